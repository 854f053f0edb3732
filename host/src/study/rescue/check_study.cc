// Checks and repairs a journal. A lost plan is read from its copy. The repair keeps a copy of the damaged file, writes
// a new journal beside it, and renames the new one into its place.
#include <fmt/format.h>

#include <map>
#include <set>
#include <system_error>

#include "base/guarded.h"
#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "dsat/host/rescue.h"
#include "plan/device_hours.h"
#include "plan/plan.h"
#include "record/check_rows.h"
#include "record/journal.h"
#include "record/plan_copy.h"
#include "record/run_lock.h"
#include "study/rescue/repair.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFindings = 20;  // a person reads no more

using Meta = std::map<std::string, Json>;

// The reason why a resume could not read a row of meta; empty: it could.
std::string wrong_with(const std::string& key, const Meta& meta) {
  const auto row = meta.find(key);
  if (row == meta.end()) return key == "plan" || key == "schema" ? "the " + key + " is lost" : "";
  try {
    if (key == "schema" && config::whole_number<int>(row->second) != kJournalSchema) return "the schema is damaged";
    if (key == "plan") plan_from_json(row->second);
    if (key == "searches") Searches{row->second};
    if (key == "max_trials") config::whole_number<int>(row->second);
    if (key == "restarts") row->second.get<std::map<uint64_t, int>>();
    if (key == "infrastructure_reruns") row->second.get<std::set<uint64_t>>();
    if (key == "spent_device_hours") row->second.get<double>();
  } catch (const Error& error) {
    if (key == "plan" || key == "searches") return error.what();
    return key + " is damaged";
  } catch (const std::exception&) {
    return key + " is damaged";
  }
  return "";
}

constexpr const char* kReadRows[] = {
    "schema", "plan", "searches", "max_trials", "restarts", "infrastructure_reruns", "spent_device_hours"};

void check_meta(const Meta& meta, std::vector<std::string>& findings) {
  for (const char* key : kReadRows) {
    if (const std::string wrong = wrong_with(key, meta); !wrong.empty()) findings.push_back("meta: " + wrong);
  }
}

// Rows that cannot be read are taken from the copy or dropped, since a resume needs none but the plan.
void mend_meta(const fs::path& dir, Meta& meta, std::vector<std::string>& mended) {
  const Meta copy = read_plan_copy(dir);
  const auto take = [&](const std::string& key) {
    const auto copied = copy.find(key);
    if (copied == copy.end() || !wrong_with(key, copy).empty()) return;
    meta[key] = copied->second;
    mended.push_back(fmt::format("meta: {} is that of {}", key, kPlanCopyFile));
  };
  for (const char* key : kReadRows) {
    if (!wrong_with(key, meta).empty()) {
      meta.erase(key);
      take(key);
    }
  }
  for (const char* key : {"settings", "searches", "max_trials"}) {
    if (meta.count(key) == 0) take(key);
  }
}

Searches searches_of(const Meta& meta) {
  const auto stored = meta.find("searches");
  return Searches(stored == meta.end() ? std::nullopt : std::optional<Json>(stored->second));
}

CheckReport findings_of(Journal& journal, const Journal::Salvaged& found) {
  CheckReport report;
  report.trials = found.trials.size();
  report.events = found.events.size();
  if (const std::string wrong = journal.structural_damage(); !wrong.empty())
    report.findings.push_back("file: " + wrong);
  for (const std::string& loss : found.losses) report.findings.push_back(loss);
  check_meta(found.meta, report.findings);
  uint64_t next = 0;
  for (const Trial& trial : found.trials) {
    if (trial.id() != next) report.findings.push_back(fmt::format("trial {}: is missing", next));
    next = trial.id() + 1;
  }
  next = 0;
  for (const JournalEvent& entry : found.events) {
    if (entry.seq != next) report.findings.push_back(fmt::format("event {}: is missing", next));
    next = entry.seq + 1;
  }
  if (report.findings.empty()) {
    const uint64_t first_trial = searches_of(found.meta).current().first_trial;
    const auto damage = find_damage(found.trials, found.events, first_trial);
    if (damage) report.findings.push_back(to_string(*damage));
  }
  if (report.findings.size() > kMostFindings) {
    const size_t more = report.findings.size() - kMostFindings;
    report.findings.resize(kMostFindings);
    report.findings.push_back(fmt::format("and {} more", more));
  }
  return report;
}

// Earlier copies keep their names.
fs::path keep_copy(const fs::path& dir) {
  const fs::path file = dir / "dsat.db";
  int number = 1;
  fs::path copy = dir / "dsat.db.damaged-1";
  while (fs::exists(copy)) copy = dir / fmt::format("dsat.db.damaged-{}", ++number);
  fs::copy_file(file, copy);
  // The log holds a part of the journal.
  if (fs::exists(dir / "dsat.db-wal")) fs::copy_file(dir / "dsat.db-wal", copy.string() + "-wal");
  return copy;
}

void write_rows(Journal& fresh, const Journal::Salvaged& found, const SoundRows& rows, const Searches& searches) {
  for (const char* key : {"plan", "settings", "max_trials", "restarts", "infrastructure_reruns", kSpentDeviceHours}) {
    if (const auto at = found.meta.find(key); at != found.meta.end()) fresh.put_meta(key, at->second);
  }
  // A lost sum of device hours is made anew from the trials that are left.
  if (found.meta.count(kSpentDeviceHours) == 0) fresh.put_meta(kSpentDeviceHours, device_hours(rows.trials));
  fresh.put_meta("searches", searches.to_json());
  for (const Trial& trial : rows.trials) fresh.put_trial(trial);
  Json profile;
  for (const JournalEvent& entry : rows.events) {
    fresh.append_event(entry.phase, entry.event, entry.ops);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::set_profile) profile = op.profile;
    }
  }
  fresh.put_meta("profile", profile);
  fresh.put_meta(kTrustsFolders, true);
}

// With a copy of the plan even unreadable tables can be mended, since the trials' folders hold the measurements.
std::unique_ptr<Journal> open_damaged(const fs::path& dir) {
  if (!read_plan_copy(dir).empty()) return Journal::open(dir, Journal::Mode::damaged);
  try {
    return Journal::open(dir, Journal::Mode::read_only);
  } catch (const Error& error) {
    if (error.code() != DSAT_INTERNAL) throw;
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its tables cannot be read, and {} is gone: this cannot be mended; put a copy "
                            "of the file back",
                            (dir / "dsat.db").string(), kPlanCopyFile));
  }
}

CheckReport repaired(const fs::path& dir, Trust trust) {
  Journal::check_is_in(dir);
  const RunLock lock = RunLock::take(dir, trust);
  CheckReport report;
  Journal::Salvaged found;
  {
    const std::unique_ptr<Journal> journal = open_damaged(dir);
    found = journal->salvage();
    report = findings_of(*journal, found);
  }
  if (report.sound()) return report;
  mend_meta(dir, found.meta, report.mended);
  if (const std::string wrong = wrong_with("plan", found.meta); !wrong.empty()) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: {}, and {} is gone: this cannot be mended; put a copy of the file back",
                            (dir / "dsat.db").string(), wrong, kPlanCopyFile));
  }
  Searches searches = searches_of(found.meta);
  const SoundRows rows = sound_rows_of(std::move(found.trials), std::move(found.events), searches);
  const fs::path copy = keep_copy(dir);
  Journal::replace(dir, [&](Journal& fresh) { write_rows(fresh, found, rows, searches); });
  report.mended.insert(report.mended.end(), rows.mended.begin(), rows.mended.end());
  report.mended.push_back(fmt::format("the damaged file is kept as {}", copy.string()));
  report.trials = rows.trials.size();
  report.events = rows.events.size();
  return report;
}

}  // namespace

Result<CheckReport> check_study(const fs::path& dir) {
  return as_result([&] {
    const std::unique_ptr<Journal> journal = open_damaged(dir);
    journal->hold_snapshot();  // a study that runs goes on meanwhile
    return findings_of(*journal, journal->salvage());
  });
}

Result<CheckReport> repair_study(const fs::path& dir, bool trust_folder) {
  return as_result([&] { return repaired(dir, trust_folder ? Trust::others : Trust::own); });
}

}  // namespace dsat::host
