// Reads what a journal still gives; the repair writes a new one beside it, keeps a copy of the damaged file, and puts
// the new one in its place by a rename.
#include <fmt/format.h>

#include <system_error>

#include "base/guarded.h"
#include "dsat/base/files.h"
#include "dsat/host/rescue.h"
#include "record/check_rows.h"
#include "record/journal.h"
#include "record/run_lock.h"
#include "study/plan.h"
#include "study/repair.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFindings = 20;  // a person reads no more

// In what the journal's rows of meta must be readable for a resume.
void check_meta(const std::map<std::string, Json>& meta, std::vector<std::string>& findings) {
  const auto plan = meta.find("plan");
  if (plan == meta.end()) {
    findings.emplace_back("meta: the plan is lost");
    return;
  }
  try {
    plan_from_json(plan->second);
    const auto searches = meta.find("searches");
    if (searches != meta.end()) Searches{searches->second};
  } catch (const std::exception& error) {
    findings.push_back(fmt::format("meta: {}", error.what()));
  }
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
    if (const auto misfit = find_misfit(found.trials, found.events)) report.findings.push_back(to_string(*misfit));
  }
  if (report.findings.size() > kMostFindings) {
    const size_t more = report.findings.size() - kMostFindings;
    report.findings.resize(kMostFindings);
    report.findings.push_back(fmt::format("and {} more", more));
  }
  return report;
}

// The copies of before keep their names.
fs::path keep_copy(const fs::path& dir) {
  const fs::path file = dir / "dsat.db";
  int number = 1;
  fs::path copy = dir / "dsat.db.damaged-1";
  while (fs::exists(copy)) copy = dir / fmt::format("dsat.db.damaged-{}", ++number);
  fs::copy_file(file, copy);
  // What the log holds belongs to the file.
  if (fs::exists(dir / "dsat.db-wal")) fs::copy_file(dir / "dsat.db-wal", copy.string() + "-wal");
  return copy;
}

void write_rows(Journal& fresh, const Journal::Salvaged& found, const SoundRows& rows, const Searches& searches) {
  for (const char* key : {"plan", "settings", "max_trials", "restarts", "infrastructure_reruns"}) {
    if (const auto at = found.meta.find(key); at != found.meta.end()) fresh.put_meta(key, at->second);
  }
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
}

// Where not even its tables can be read, nothing is left to mend.
std::unique_ptr<Journal> open_to_mend(const fs::path& dir) {
  try {
    return Journal::open(dir, Journal::Mode::read_only);
  } catch (const Error& error) {
    if (error.code() != DSAT_INTERNAL) throw;
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its tables cannot be read: this cannot be mended; put a copy of "
                            "the file back",
                            (dir / "dsat.db").string()));
  }
}

CheckReport repaired(const fs::path& dir) {
  const RunLock lock = RunLock::take(dir);
  CheckReport report;
  Journal::Salvaged found;
  {
    const std::unique_ptr<Journal> journal = open_to_mend(dir);
    found = journal->salvage();
    report = findings_of(*journal, found);
  }
  if (report.sound()) return report;
  std::vector<std::string> plan_problems;
  check_meta(found.meta, plan_problems);
  if (!plan_problems.empty()) {
    throw Error(DSAT_INTERNAL, fmt::format("journal {}: {}: this cannot be mended; put a copy of the file back",
                                           (dir / "dsat.db").string(), plan_problems.front()));
  }
  const auto stored = found.meta.find("searches");
  Searches searches(stored == found.meta.end() ? std::nullopt : std::optional<Json>(stored->second));
  const SoundRows rows = sound_rows_of(std::move(found.trials), std::move(found.events), searches);
  const fs::path copy = keep_copy(dir);
  Journal::replace(dir, [&](Journal& fresh) { write_rows(fresh, found, rows, searches); });
  report.mended = rows.mended;
  report.mended.push_back(fmt::format("the damaged file is kept as {}", copy.string()));
  report.trials = rows.trials.size();
  report.events = rows.events.size();
  return report;
}

}  // namespace

Result<CheckReport> check_study(const fs::path& dir) {
  return as_result([&] {
    const std::unique_ptr<Journal> journal = Journal::open(dir, Journal::Mode::read_only);
    return findings_of(*journal, journal->salvage());
  });
}

Result<CheckReport> repair_study(const fs::path& dir) {
  return as_result([&] { return repaired(dir); });
}

}  // namespace dsat::host
