// Failures in a row are kept as long as their last lines of stderr are the same; any other end of a trial forgets them.
#include "study/failure_watch.h"

#include <fmt/format.h>

#include <utility>

#include "dsat/config/batch.h"

namespace dsat::host {

void FailureWatch::add(const Trial& trial) {
  if (!trial.costs_a_run()) return;
  if (trial.record.outcome != Outcome::failed || !trial.end || trial.end->last_line.empty()) {
    in_a_row_.clear();
    return;
  }
  const std::string& last_line = trial.end->last_line;
  if (!in_a_row_.empty() && in_a_row_.back().last_line != last_line) in_a_row_.clear();
  in_a_row_.push_back({trial.id(), last_line, trial.record.config.value(config::kMicroBatchKey, int64_t{0})});
}

std::optional<std::string> FailureWatch::reason_to_end(const Trial& last) const {
  if (!last.costs_a_run() || !last.end) return std::nullopt;
  const bool failed = last.record.outcome == Outcome::failed || last.record.outcome == Outcome::timed_out;
  if (failed && last.record.kind == TrialKind::profile) return "the profile trial failed: " + last.record.reason;
  if (in_a_row_.size() < kSameFailures || in_a_row_.back().trial != last.id()) return std::nullopt;
  std::set<int64_t> micro_batches;
  for (const Failure& failure : in_a_row_) micro_batches.insert(failure.micro_batch);
  if (micro_batches.size() < 2) return std::nullopt;
  return fmt::format("{} trials in a row failed in the same way: {}", in_a_row_.size(), last.end->last_line);
}

bool FailureWatch::grant_rerun(uint64_t id) {
  const bool first = reruns_.insert(id).second;
  reruns_changed_ |= first;
  return first;
}

std::optional<std::set<uint64_t>> FailureWatch::take_changed_reruns() {
  if (!std::exchange(reruns_changed_, false)) return std::nullopt;
  return reruns_;
}

}  // namespace dsat::host
