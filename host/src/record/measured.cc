// Sums the metrics of the trials of each identity, and divides once at the end.
#include "record/measured.h"

#include <algorithm>
#include <map>

namespace dsat::host {
namespace {

void add(MeasuredConfiguration& to, const TrialRecord& trial, double metric) {
  ++to.count;
  to.metric += metric;
  if (trial.peak_bytes) to.peak_bytes = std::max(to.peak_bytes.value_or(0), *trial.peak_bytes);
  if (to.count == 1) {
    to.metrics = trial.metrics;
    return;
  }
  // A metric gets a mean only if every trial measured it.
  Json sums = Json::object();
  for (const auto& item : to.metrics.items()) {
    const auto other = trial.metrics.find(item.key());
    if (other == trial.metrics.end()) continue;
    const bool numbers = item.value().is_number() && other->is_number();
    sums[item.key()] = numbers ? Json(item.value().get<double>() + other->get<double>()) : item.value();
  }
  to.metrics = std::move(sums);
}

// A single trial's metrics are not changed, because a division would turn integers into floating point.
void sums_to_means(MeasuredConfiguration& measured) {
  if (measured.count == 1) return;
  measured.metric /= measured.count;
  for (auto& item : measured.metrics.items()) {
    if (item.value().is_number()) item.value() = item.value().get<double>() / measured.count;
  }
}

}  // namespace

std::vector<MeasuredConfiguration> measured_configurations(const std::vector<Trial>& trials,
                                                           const std::string& metric) {
  std::vector<MeasuredConfiguration> found;
  std::map<std::string, size_t> by_identity;
  for (const Trial& trial : trials) {
    const TrialRecord& record = trial.record;
    if (record.outcome != Outcome::completed || record.duplicate_of) continue;
    if (!record.metrics.is_object() || !record.metrics.contains(metric) || !record.metrics[metric].is_number())
      continue;
    const auto [at, fresh] = by_identity.emplace(trial.identity, found.size());
    if (fresh) {
      found.emplace_back();
      found.back().trial = trial.id();
      found.back().metrics = Json::object();
    }
    add(found[at->second], record, record.metrics[metric].get<double>());
  }
  for (MeasuredConfiguration& measured : found) sums_to_means(measured);
  return found;
}

}  // namespace dsat::host
