// The size and time of the journal's files show whether something was written. The tag of a document is a hash of its
// text. A running study is read every two seconds anyway, because the ages of its trials grow.
#include "serve/watched_study.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "page/page.h"

namespace dsat::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string stamp_of(const std::filesystem::path& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) return "-";
  return fmt::format("{}:{}.{}:{}", info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size);
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

bool has_ended(const host::StudyFacts& facts, const host::TrialRecord& trial) {
  return trial.started() && facts.trials[trial.id].place == host::TrialPlace::ended;
}

// The number of trials that had ended when this one ended: its place on the chart that compares studies.
size_t ended_with(const host::StudyFacts& facts, const host::TrialRecord& last) {
  const auto end = [](const host::TrialRecord& trial) { return std::tie(trial.ended_at, trial.id); };
  const auto& trials = facts.record.trials;
  return static_cast<size_t>(std::count_if(trials.begin(), trials.end(), [&](const host::TrialRecord& trial) {
    return has_ended(facts, trial) && end(trial) <= end(last);
  }));
}

Json line_of(size_t id, const std::filesystem::path& dir, const StudySnapshot& snapshot) {
  Json line{{"id", id}, {"dir", dir.string()}, {"error", snapshot.error.empty() ? Json() : Json(snapshot.error)}};
  line["name"] = snapshot.facts ? snapshot.facts->record.study.value("name", "") : dir.filename().string();
  if (!snapshot.facts) return line;
  const host::StudyFacts& facts = *snapshot.facts;
  line["status"] = to_string(facts.record.status);
  line["metric"] = facts.metric;
  line["direction"] = facts.maximise ? "maximize" : "minimize";
  line["started"] = facts.progress.started;
  line["max_trials"] = facts.progress.max_trials;
  line["running"] = facts.progress.running;
  line["best"] = facts.record.best ? Json(facts.record.best->metric) : Json();
  line["best_trial"] = facts.record.best ? Json(facts.record.best->trial) : Json();
  line["gain"] = facts.gain ? Json(facts.gain->ratio) : Json();
  line["spent_device_hours"] = facts.payback.spent_device_hours;
  line["elapsed_seconds"] = or_null(facts.progress.elapsed_seconds);
  const auto& trials = facts.record.trials;
  line["ended"] =
      std::count_if(trials.begin(), trials.end(), [&](const auto& trial) { return has_ended(facts, trial); });
  line["best_path"] = Json::array();
  for (const host::BestStep& step : facts.best_path) {
    line["best_path"].push_back(
        {{"trial", step.trial}, {"value", step.value}, {"ended", ended_with(facts, trials[step.trial])}});
  }
  return line;
}

}  // namespace

Document document_of(std::string text) {
  Document document;
  document.tag = fmt::format("\"{:x}-{:x}\"", std::hash<std::string>{}(text), text.size());
  document.compressed = gzip(text);
  document.text = std::move(text);
  return document;
}

std::string WatchedStudy::signature() const {
  std::string text;
  for (const char* name : {"dsat.db", "dsat.db-wal", "dsat.db-journal", "dsat.lock"})
    text += stamp_of(dir_ / name) + " ";
  const auto now = latest();
  const bool runs = now && now->facts && now->facts->record.status == host::StudyStatus::running;
  const bool lost = now && !now->facts;
  constexpr int kSecondsOfAge = 2;
  if (runs || lost) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
    text += fmt::to_string(seconds / kSecondsOfAge);
  }
  return text;
}

std::shared_ptr<const StudySnapshot> WatchedStudy::latest() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return latest_;
}

bool WatchedStudy::refresh() {
  const auto begin = Clock::now();
  if (begin < next_) return false;
  std::string signature = this->signature();
  if (signature == seen_) return false;
  seen_ = std::move(signature);
  auto snapshot = std::make_shared<StudySnapshot>();
  auto facts = host::read_study_facts(dir_);
  if (facts.ok()) {
    snapshot->facts = std::move(facts).value();
    snapshot->page = document_of(page_document(*snapshot->facts));
  } else {
    snapshot->error = facts.status().message();
  }
  snapshot->listed = line_of(id_, dir_, *snapshot);
  constexpr int kShare = 4;
  next_ = Clock::now() + kShare * (Clock::now() - begin);
  const std::lock_guard<std::mutex> guard(mutex_);
  if (latest_ && latest_->page.tag == snapshot->page.tag && latest_->error == snapshot->error) return false;
  latest_ = std::move(snapshot);
  return true;
}

}  // namespace dsat::cli
