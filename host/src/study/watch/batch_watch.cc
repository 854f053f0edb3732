// Compares each measured trial with the earlier ones that differ from it in their batch sizes alone.
#include "study/watch/batch_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr double kLatencyTolerance = 0.05;

}  // namespace

// A process's peak holds the interpreter and its libraries, too, and repeats within 2 %: a small batch hides in it. A
// log's peak is rounded, and says nothing.
BatchWatch::Evidence BatchWatch::evidence_of(const TrialRecord& record) {
  if (!record.peak_bytes || record.peak_source == kPeakOfLog) return {64, std::nullopt};
  if (record.peak_source == kPeakOfProcess) return {16, 0.02};
  return {4, 1e-4};  // an allocator's peak repeats, and a sample takes more
}

bool BatchWatch::took_the_same(const Measured& small, const Measured& large) {
  const Evidence& weaker = small.evidence.factor > large.evidence.factor ? small.evidence : large.evidence;
  if (static_cast<double>(large.micro_batch) < weaker.factor * static_cast<double>(small.micro_batch)) return false;
  if (large.latency_us > (1 + kLatencyTolerance) * small.latency_us) return false;
  if (!weaker.memory_tolerance) return true;
  return std::abs(large.peak_bytes - small.peak_bytes) <=
         *weaker.memory_tolerance * std::max(large.peak_bytes, small.peak_bytes);
}

std::optional<std::string> BatchWatch::add(const Trial& trial) {
  const Json& metrics = trial.record.metrics;
  if (is_reported_ || trial.model_info || trial.record.outcome != Outcome::completed || !metrics.is_object()) {
    return std::nullopt;
  }
  const double latency_us = metrics.value("latency", 0.0);
  Json rest = trial.record.config;
  const int64_t micro_batch = rest.value(config::kMicroBatchKey, int64_t{0});
  if (latency_us <= 0 || micro_batch <= 0) return std::nullopt;
  for (const char* key : {config::kMicroBatchKey, config::kTrainBatchKey}) rest.erase(key);
  const Measured now{trial.id(), micro_batch, latency_us, static_cast<double>(trial.record.peak_bytes.value_or(0)),
                     evidence_of(trial.record)};
  std::vector<Measured>& alike = measured_[config::text_of(rest)];
  const auto same =
      std::find_if(alike.begin(), alike.end(), [&](const Measured& before) { return took_the_same(before, now); });
  if (same == alike.end()) {
    alike.push_back(now);
    return std::nullopt;
  }
  is_reported_ = true;
  return fmt::format(
      "trials {} and {} took the same time{} with micro batches {} and {}: either the script has a batch size of its "
      "own (hand it the micro batch: --arg-mapping train_micro_batch_size_per_gpu=--FLAG), or its data set has fewer "
      "samples than a batch (--max-micro-batch); a higher throughput means nothing here",
      same->trial, now.trial, same->evidence.memory_tolerance && now.evidence.memory_tolerance ? " and memory" : "",
      same->micro_batch, micro_batch);
}

}  // namespace dsat::host
