// Failures in a row are kept as long as they are alike, and forgotten at any other end of a trial. All failures are
// also kept for good, by how they ended.
#include "study/watch/failure_watch.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "dsat/base/affix.h"
#include "dsat/config/batch.h"

namespace dsat::host {

namespace {

// Did the engine refuse the configuration? It would refuse it again.
bool is_of_configuration(const std::string& text) {
  constexpr std::string_view kTexts[] = {"DeepSpeedConfigError", "validation error for ", "validation errors for ",
                                         "ValidationError", "Check batch related parameters"};
  return std::any_of(std::begin(kTexts), std::end(kTexts),
                     [&](std::string_view words) { return text.find(words) != std::string::npos; });
}

// The reason of a failure counts, and not its last line, if the exit status is 0 (the line is a logger's), if the trial
// went on from a checkpoint (the line is a consequence), or if it learned something else.
const std::string& how_it_failed(Outcome outcome, const std::string& reason, const EndDetails& end) {
  const bool by_reason = outcome == Outcome::timed_out || outcome == Outcome::out_of_memory ||
                         outcome == Outcome::diverged || end.exit_code == 0 || end.from_checkpoint ||
                         end.last_line.empty();
  return by_reason ? reason : end.last_line;
}

bool begins_with_one_of(const std::string& line, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return starts_with(line, name); });
}

// May one sample have been too few? Then Python ends with an error of values, shapes or indices: no statistics of one
// sample, fewer tokens than an expert takes. It is no error of names, files, devices or the configuration, and no
// signal.
bool may_be_of_batch(const Trial& trial) {
  const std::string& line = trial.end->last_line;
  const auto others = {"CUDA error", "HIP error", "NCCL", "No such file", "building extension"};
  const bool is_of_another = std::any_of(others.begin(), others.end(),
                                         [&](const char* words) { return line.find(words) != std::string::npos; });
  return !is_of_another && !is_of_configuration(line) &&
         begins_with_one_of(line, {"ValueError", "RuntimeError", "AssertionError", "IndexError", "ZeroDivisionError"});
}

// May another configuration work? Not with an error of names, files or syntax in Python, nor with a process that was
// not started.
bool may_be_mended(const Trial& trial) {
  const auto says = [&](const char* words) { return trial.record.reason.find(words) != std::string::npos; };
  const auto files = {"ModuleNotFoundError", "FileNotFoundError", "PermissionError"};
  return trial.record.outcome == Outcome::failed && !is_of_code(trial) &&
         !begins_with_one_of(trial.end->last_line, files) && !says(" failed by itself") &&
         !says(" could not start it") && !says("can't open file");
}

}  // namespace

const std::string& how_it_failed(const Trial& trial) {
  return how_it_failed(*trial.record.outcome, trial.record.reason, *trial.end);
}

bool is_of_code(const Trial& failed) {
  return begins_with_one_of(failed.end->last_line, {"NameError", "SyntaxError", "IndentationError"});
}

bool refuses_train_batch(const TrialEnd& end) {
  if (end.outcome != Outcome::failed) return false;
  static const RE2 product(R"(\d+ != \d+ \* \d+ \* \d+)", RE2::Latin1);
  const std::string& how = how_it_failed(end.outcome, end.reason, end);
  return how.find("train_batch_size is not equal to") != std::string::npos || RE2::PartialMatch(how, product);
}

void FailureWatch::add(const Trial& trial) {
  if (!trial.costs_a_run()) return;
  const auto micro_batch = trial.record.config.value(config::kMicroBatchKey, int64_t{0});
  if (trial.record.outcome == Outcome::completed) {
    any_completed_ = true;
    if (!trial.model_info) completed_.insert(micro_batch);
  }
  // After a trial has trained, a trial that takes too long is slow and did not fail.
  const bool is_failure =
      trial.record.outcome == Outcome::failed || (trial.record.outcome == Outcome::timed_out && completed_.empty());
  if (!is_failure || !trial.end || how_it_failed(trial).empty()) {
    in_a_row_.clear();
    return;
  }
  const Failure failure{trial.id(), how_it_failed(trial), micro_batch, trial.end->from_checkpoint};
  by_how_[failure.how].failures.push_back(failure);
  if (!in_a_row_.empty() && in_a_row_.back().how != failure.how) in_a_row_.clear();
  in_a_row_.push_back(failure);
}

bool FailureWatch::smaller_ones_ran(const std::vector<Failure>& failures) const {
  return !completed_.empty() && std::all_of(failures.begin(), failures.end(), [this](const Failure& failure) {
    return !failure.from_checkpoint && failure.micro_batch > *completed_.begin();
  });
}

// A failure of the profile is the script's as long as no trial has worked. A failure below the user's own micro batch
// proves nothing.
std::optional<std::string> FailureWatch::why_profile_failed(const Trial& trial) const {
  const std::string reason = "the profile trial failed: " + trial.record.reason;
  if (trial.record.outcome != Outcome::failed) return reason;
  const auto micro_batch = trial.record.config.value(config::kMicroBatchKey, int64_t{0});
  if (micro_batch < baseline_micro_batch_.value_or(0)) return std::nullopt;
  if (reason.find("mismatch TrainingArguments values") != std::string::npos) {  // Hugging Face's Trainer
    return reason +
           "; the script gives its TrainingArguments batch sizes of its own: let it take them from flags, as "
           "HfArgumentParser does, and put --per_device_train_batch_size N into COMMAND";
  }
  if (micro_batch > 1 || !may_be_of_batch(trial)) return reason;
  return reason + "; a model that needs a micro batch above 1 wants --min-micro-batch";
}

std::optional<std::string> FailureWatch::reason_to_end(const Trial& last, bool is_suspected,
                                                       bool profile_goes_on) const {
  if (!last.costs_a_run() || !last.end) return std::nullopt;
  // The phases after the search measure again what ran before: their failures say nothing of the script.
  if (last.phase > Phase::searcher) return std::nullopt;
  const bool failed = last.record.outcome == Outcome::failed || last.record.outcome == Outcome::timed_out;
  if (failed && last.record.kind == TrialKind::profile && !any_completed_) {
    return profile_goes_on && may_be_mended(last) ? std::nullopt : why_profile_failed(last);
  }
  if (is_suspected || in_a_row_.empty() || in_a_row_.back().trial != last.id()) return std::nullopt;
  std::set<int64_t> micro_batches;
  for (const Failure& failure : in_a_row_) micro_batches.insert(failure.micro_batch);
  // If a micro batch as large has trained, the value of an axis may be the cause (an extension that does not compile).
  // More trials have to fail then before the script or the machine is the cause.
  const bool has_run =
      !completed_.empty() && *completed_.rbegin() >= *micro_batches.begin() && !in_a_row_.back().from_checkpoint;
  if (in_a_row_.size() < (has_run ? kSameFailuresOnceRan : kSameFailures)) return std::nullopt;
  if (micro_batches.size() < 2 || smaller_ones_ran(in_a_row_)) return std::nullopt;
  return fmt::format("{} trials in a row failed in the same way: {}", in_a_row_.size(), how_it_failed(last));
}

std::optional<std::string> FailureWatch::ceiling(const Trial& last) {
  if (last.record.outcome != Outcome::failed || !last.end) return std::nullopt;
  const auto at = by_how_.find(how_it_failed(last));
  if (at == by_how_.end() || at->second.is_reported || at->second.failures.size() < 2) return std::nullopt;
  const std::vector<Failure>& failures = at->second.failures;
  int64_t smallest = failures.front().micro_batch;
  for (const Failure& failure : failures) smallest = std::min(smallest, failure.micro_batch);
  // A micro batch as large that has run shows that there is no ceiling.
  if (!smaller_ones_ran(failures) || *completed_.rbegin() >= smallest) return std::nullopt;
  at->second.is_reported = true;
  const int64_t ran = *std::prev(completed_.lower_bound(smallest));
  return fmt::format(
      "trials {} and {} failed in the same way, smaller micro batches ran ({}): if this is a ceiling that is no "
      "memory, --max-micro-batch {} keeps the search below it",
      failures[0].trial, failures[1].trial, at->first, ran);
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

bool FailureWatch::grant_restart(const TrialEnd& end, int most) {
  const std::string& how = how_it_failed(end.outcome, end.reason, end);
  if (most < 1 || end.deviation || is_of_configuration(how) || by_how_.count(how) != 0) return false;
  int& count = restarts_[end.id];
  if (count >= most) return false;
  ++count;
  restarts_changed_ = true;
  return true;
}

void FailureWatch::forget_from(uint64_t id) {
  const auto restart = restarts_.lower_bound(id);
  restarts_changed_ |= restart != restarts_.end();
  restarts_.erase(restart, restarts_.end());
  const auto rerun = reruns_.lower_bound(id);
  reruns_changed_ |= rerun != reruns_.end();
  reruns_.erase(rerun, reruns_.end());
}

std::optional<std::map<uint64_t, int>> FailureWatch::take_changed_restarts() {
  if (!std::exchange(restarts_changed_, false)) return std::nullopt;
  return restarts_;
}

}  // namespace dsat::host
