// Keeps the sums of two fitted lines for each group of comparable trials, and the steps of configurations that differ
// in their batch sizes alone.
#include "finals/ignored_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "dsat/config/rules.h"
#include "dsat/host/format.h"
#include "finals/noise.h"

namespace dsat::host {
namespace {

// A small model on a fast device waits for the launch of its kernels: its step takes as long for 1,000 samples as for
// one. Equal times alone therefore show little. Equal memory shows more: an allocator's peak shows each sample, while
// in the peak of a process a small batch hides behind the libraries.
constexpr double kByAllocator = 4, kByProcess = 16, kByTimeAlone = 64;
// An allocator's peak repeats, and the peak of a process repeats within 2 %.
constexpr double kAllocatorTolerance = 1e-4, kProcessTolerance = 0.02, kLatencyTolerance = 0.05;

// The proof needs the square of a factor. Memory counts only over several ZeRO stages, since an engine that reads its
// configuration differs in time and memory between stages.
constexpr double squared(double factor) { return factor * factor; }
constexpr double kFewestTrials = 5;
// The growth of a step, and of its peak, that still counts as flat. Beyond the factor a step may grow by the fourth
// root of the rest, since the line of a noisy script is no sharper, and a batch that is computed takes longer by then.
constexpr double kFlatTime = 1.1, kFlatMemory = 1.01, kBeyond = 0.25;

constexpr const char* kHandItOver = "--arg-mapping train_micro_batch_size_per_gpu=--FLAG";

}  // namespace

void FittedLine::add(double x, double y) {
  ++count_;
  x_ += x;
  y_ += y;
  xx_ += x * x;
  xy_ += x * y;
  yy_ += y * y;
}

double FittedLine::highest_slope() const {
  const double width = xx_ - x_ * x_ / count_;
  if (count_ < 3 || width <= 1e-9 * xx_) return std::numeric_limits<double>::infinity();
  const double slope = (xy_ - x_ * y_ / count_) / width;
  const double left = std::max(0.0, yy_ - y_ * y_ / count_ - slope * slope * width);
  return slope + student_quantile(0.975, count_ - 2) * std::sqrt(left / (count_ - 2) / width);
}

// The peak of a log is rounded, so it counts as none.
IgnoredBatch::Evidence IgnoredBatch::evidence_of(const TrialRecord& record) {
  if (!record.peak_bytes || record.peak_source == kPeakOfLog) return {kByTimeAlone, std::nullopt};
  if (record.peak_source == kPeakOfProcess) return {kByProcess, kProcessTolerance};
  return {kByAllocator, kAllocatorTolerance};
}

std::optional<IgnoredBatch::Step> IgnoredBatch::step_of(const Trial& trial) {
  const TrialRecord& record = trial.record;
  if (trial.model_info || record.duplicate_of || record.outcome != Outcome::completed) return std::nullopt;
  const double micro_batch = config::number_at(record.config, config::kMicroBatchKey).value_or(0);
  const double latency_us = config::number_at(record.metrics, "latency").value_or(0);
  if (micro_batch < 1 || latency_us <= 0) return std::nullopt;
  return Step{trial.id(), micro_batch, latency_us, static_cast<double>(record.peak_bytes.value_or(0)),
              evidence_of(record)};
}

void IgnoredBatch::add(const Trial& trial) {
  if (trial.record.outcome == Outcome::out_of_memory) fills_memory_ = true;
  const std::optional<Step> now = step_of(trial);
  if (!now) return;
  const Json& config = trial.record.config;
  const double batch = config::number_at(config, config::kTrainBatchKey).value_or(now->micro_batch);
  const double accumulation = config::number_at(config, config::kAccumulationKey).value_or(1);
  Group& group = groups_[{accumulation, std::round(batch / now->micro_batch)}];
  if (group.times.count() < 1 || now->micro_batch < group.smallest.micro_batch) group.smallest = *now;
  if (now->micro_batch > group.largest.micro_batch) group.largest = *now;
  const double x = std::log(now->micro_batch);
  group.times.add(x, std::log(now->latency_us));
  if (now->evidence.memory_tolerance) group.peaks.add(x, std::log(std::max(1.0, now->peak_bytes)));
  group.stages.insert(config::zero_stage(config));
  group.factor = std::max(group.factor, now->evidence.factor);
}

bool IgnoredBatch::is_flat(const Group& group) {
  if (group.times.count() < kFewestTrials) return false;
  const double factor = squared(group.stages.size() < 2 ? kByTimeAlone : group.factor);
  const double span = group.largest.micro_batch / group.smallest.micro_batch;
  if (span < factor) return false;
  const double most = std::max(kFlatTime, std::pow(span / factor, kBeyond));
  if (group.times.highest_slope() * std::log(span) > std::log(most)) return false;
  // A few peaks among many trials without one prove nothing, but they may disprove that the batch is ignored.
  return group.peaks.count() < 3 || group.peaks.highest_slope() * std::log(span) <= std::log(kFlatMemory);
}

std::optional<std::string> IgnoredBatch::proof() const {
  if (fills_memory_) return std::nullopt;
  for (const auto& [key, group] : groups_) {
    if (!is_flat(group)) continue;
    const Step &small = group.smallest, &large = group.largest;
    return fmt::format("the step took the same time at micro batch {} ({}, trial {}) and {} ({}, trial {})",
                       small.micro_batch, format_metric("latency", small.latency_us), small.trial, large.micro_batch,
                       format_metric("latency", large.latency_us), large.trial);
  }
  return std::nullopt;
}

bool IgnoredBatch::took_the_same(const Step& small, const Step& large) {
  const Evidence& weaker = small.evidence.factor > large.evidence.factor ? small.evidence : large.evidence;
  if (large.micro_batch < weaker.factor * small.micro_batch) return false;
  if (large.latency_us > (1 + kLatencyTolerance) * small.latency_us) return false;
  if (!weaker.memory_tolerance) return true;
  return std::abs(large.peak_bytes - small.peak_bytes) <=
         *weaker.memory_tolerance * std::max(large.peak_bytes, small.peak_bytes);
}

std::optional<std::string> IgnoredBatch::compare(const Trial& trial) {
  const std::optional<Step> now = has_warned_ ? std::nullopt : step_of(trial);
  if (!now) return std::nullopt;
  Json rest = trial.record.config;
  for (const char* key : {config::kMicroBatchKey, config::kTrainBatchKey}) rest.erase(key);
  std::vector<Step>& alike = alike_[config::text_of(rest)];
  const auto same =
      std::find_if(alike.begin(), alike.end(), [&](const Step& before) { return took_the_same(before, *now); });
  if (same == alike.end()) {
    alike.push_back(*now);
    return std::nullopt;
  }
  has_warned_ = true;
  return fmt::format(
      "trials {} and {} took the same time{} with micro batches {} and {}: either the script has a batch size of its "
      "own (hand it the micro batch: {}), or its data set has fewer samples than a batch (--max-micro-batch); a higher "
      "throughput means nothing here",
      same->trial, now->trial, same->evidence.memory_tolerance && now->evidence.memory_tolerance ? " and memory" : "",
      same->micro_batch, now->micro_batch, kHandItOver);
}

}  // namespace dsat::host
