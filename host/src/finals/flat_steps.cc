// Keeps the sums of two fitted lines for each group of comparable trials, and judges by them.
#include "finals/flat_steps.h"

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
// one. So equal times alone prove little, and memory that is equal too, over several ZeRO stages, proves more: stages
// differ in both wherever an engine reads them. An allocator's peak shows each sample; in the peak of a process a small
// batch hides behind the libraries.
constexpr double kByAllocator = 16, kByProcess = 256, kByTimeAlone = 4096;
constexpr double kFewestTrials = 5;
// What a step, and its peak, may grow by and still count as flat. Beyond the factor a step may grow by the fourth root
// of what is beyond: a noisy script shows no sharper line, and a real device is slower by then.
constexpr double kFlatTime = 1.1, kFlatMemory = 1.01, kBeyond = 0.25;

double factor_of(const TrialRecord& record) {
  if (!record.peak_bytes || record.peak_source == kPeakOfLog) return kByTimeAlone;
  return record.peak_source == kPeakOfProcess ? kByProcess : kByAllocator;
}

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

void FlatSteps::add(const Trial& trial) {
  const TrialRecord& record = trial.record;
  if (record.outcome == Outcome::out_of_memory) fills_memory_ = true;
  if (trial.model_info || record.duplicate_of || record.outcome != Outcome::completed) return;
  const double micro_batch = config::number_at(record.config, config::kMicroBatchKey).value_or(0);
  const double batch = config::number_at(record.config, config::kTrainBatchKey).value_or(micro_batch);
  const double latency_us = config::number_at(record.metrics, "latency").value_or(0);
  if (micro_batch < 1 || latency_us <= 0) return;
  const double accumulation = config::number_at(record.config, config::kAccumulationKey).value_or(1);
  Group& group = groups_[{accumulation, std::round(batch / micro_batch)}];
  const Measured now{trial.id(), micro_batch, latency_us};
  if (group.times.count() < 1 || micro_batch < group.smallest.micro_batch) group.smallest = now;
  if (micro_batch > group.largest.micro_batch) group.largest = now;
  const double x = std::log(micro_batch), factor = factor_of(record);
  group.times.add(x, std::log(latency_us));
  if (factor < kByTimeAlone)
    group.peaks.add(x, std::log(static_cast<double>(std::max<uint64_t>(1, *record.peak_bytes))));
  group.stages.insert(config::zero_stage(record.config));
  group.factor = std::max(group.factor, factor);
}

bool FlatSteps::is_flat(const Group& group) {
  if (group.times.count() < kFewestTrials) return false;
  const double factor = group.stages.size() < 2 ? kByTimeAlone : group.factor;
  const double span = group.largest.micro_batch / group.smallest.micro_batch;
  if (span < factor) return false;
  const double most = std::max(kFlatTime, std::pow(span / factor, kBeyond));
  if (group.times.highest_slope() * std::log(span) > std::log(most)) return false;
  // A few peaks among many trials without one do not prove it, but they may disprove it.
  return group.peaks.count() < 3 || group.peaks.highest_slope() * std::log(span) <= std::log(kFlatMemory);
}

std::optional<std::string> FlatSteps::why() const {
  if (fills_memory_) return std::nullopt;
  for (const auto& [key, group] : groups_) {
    if (!is_flat(group)) continue;
    const Measured &small = group.smallest, &large = group.largest;
    return fmt::format(
        "the step took the same time at micro batch {} ({}, trial {}) and {} ({}, trial {}): the script seems to "
        "ignore the configuration, so a higher throughput means nothing; let it read the file that it is given, or "
        "hand it the micro batch: --arg-mapping train_micro_batch_size_per_gpu=--FLAG",
        small.micro_batch, format_metric("latency", small.latency_us), small.trial, large.micro_batch,
        format_metric("latency", large.latency_us), large.trial);
  }
  return std::nullopt;
}

std::optional<std::string> why_steps_say_nothing(const std::vector<Trial>& trials) {
  FlatSteps steps;
  for (const Trial& trial : trials) steps.add(trial);
  return steps.why();
}

}  // namespace dsat::host
