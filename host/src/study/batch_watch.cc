// Compares each measured trial with the one of the smallest micro batch among those that are alike otherwise.
#include "study/batch_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr double kFactor = 4, kFactorWithoutMemory = 64;
constexpr double kLatencyTolerance = 0.05;
constexpr double kMemoryTolerance = 1e-4;  // an allocator's peak repeats, and a sample takes more

bool alike(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::max(a, b); }

}  // namespace

std::optional<std::string> BatchWatch::add(const Trial& trial) {
  const Json& metrics = trial.record.metrics;
  if (is_told_ || trial.model_info || trial.record.outcome != Outcome::completed || !metrics.is_object()) {
    return std::nullopt;
  }
  const double latency_us = metrics.value("latency", 0.0);
  Json rest = trial.record.config;
  const int64_t micro_batch = rest.value(config::kMicroBatchKey, int64_t{0});
  if (latency_us <= 0 || micro_batch <= 0) return std::nullopt;
  for (const char* key : {config::kMicroBatchKey, config::kTrainBatchKey}) rest.erase(key);
  // A log's peak is rounded.
  const bool has_exact_peak = trial.record.peak_bytes && trial.record.peak_source != kPeakOfLog;
  const Measured now{trial.id(), micro_batch, latency_us, has_exact_peak ? trial.record.peak_bytes : std::nullopt};
  const auto [at, first] = smallest_.emplace(config::text_of(rest), now);
  const Measured before = at->second;
  if (first || micro_batch < before.micro_batch) {
    at->second = now;
    return std::nullopt;
  }
  const bool both = now.peak_bytes && before.peak_bytes;
  const double factor = static_cast<double>(micro_batch) / static_cast<double>(before.micro_batch);
  if (factor < (both ? kFactor : kFactorWithoutMemory) || !alike(latency_us, before.latency_us, kLatencyTolerance) ||
      (both &&
       !alike(static_cast<double>(*now.peak_bytes), static_cast<double>(*before.peak_bytes), kMemoryTolerance))) {
    return std::nullopt;
  }
  is_told_ = true;
  return fmt::format(
      "trials {} and {} took the same time{} with micro batches {} and {}: the script does not seem to use the micro "
      "batch of its configuration, so a higher throughput means nothing here; hand the micro batch to the script "
      "(--arg-mapping train_micro_batch_size_per_gpu=--FLAG)",
      before.trial, now.trial, both ? " and memory" : "", before.micro_batch, micro_batch);
}

}  // namespace dsat::host
