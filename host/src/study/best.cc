#include "study/best.h"

#include <algorithm>
#include <cstdio>

#include "dsat/config/json.h"

namespace dsat::host {
namespace {

// Adds a trial's metrics to the running sums of its configuration.
void add(Measured& to, const TrialRecord& trial, double metric) {
  ++to.count;
  to.metric += metric;
  if (trial.peak_bytes) to.peak_bytes = std::max(to.peak_bytes.value_or(0), *trial.peak_bytes);
  if (to.count == 1) {
    to.metrics = trial.metrics;
    return;
  }
  // Only what every one of them measured has a mean.
  Json sums = Json::object();
  for (const auto& item : to.metrics.items()) {
    const auto other = trial.metrics.find(item.key());
    if (other == trial.metrics.end()) continue;
    const bool numbers = item.value().is_number() && other->is_number();
    sums[item.key()] = numbers ? Json(item.value().get<double>() + other->get<double>()) : item.value();
  }
  to.metrics = std::move(sums);
}

void sums_to_means(Measured& measured) {
  if (measured.count == 1) return;
  measured.metric /= measured.count;
  for (auto& item : measured.metrics.items()) {
    if (item.value().is_number()) item.value() = item.value().get<double>() / measured.count;
  }
}

std::string rounded(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

// Two different numbers, with as many digits as it takes to see that.
std::pair<std::string, std::string> told_apart(double a, double b) {
  constexpr int kFewest = 4, kAll = 17;
  int digits = kFewest;
  while (digits < kAll && rounded(a, digits) == rounded(b, digits)) ++digits;
  return {rounded(a, digits), rounded(b, digits)};
}

}  // namespace

std::vector<Measured> measured_configurations(const std::vector<Trial>& trials, const std::string& metric) {
  std::vector<Measured> found;
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
  for (Measured& measured : found) sums_to_means(measured);
  return found;
}

Json best_config(Json trial_config) {
  config::erase(trial_config, "autotuning");  // how many devices it runs on is the command's to say
  return trial_config;
}

std::optional<BestRecord> choose_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                      std::optional<uint64_t> believed) {
  const std::vector<Measured> all = measured_configurations(trials, metric);
  if (all.empty()) return std::nullopt;
  const auto better = [&](const Measured& a, const Measured& b) {
    if (a.metric != b.metric) return maximise ? a.metric > b.metric : a.metric < b.metric;
    return a.trial < b.trial;
  };
  const Measured* fastest = &*std::min_element(all.begin(), all.end(), better);
  const Measured* best = fastest;
  if (believed && *believed < trials.size()) {
    for (const Measured& measured : all) {
      if (trials[measured.trial].identity == trials[*believed].identity) best = &measured;
    }
  }
  BestRecord record{best->trial, best_config(trials[best->trial].record.config), best->metrics, best->metric, ""};
  if (best->metric != fastest->metric) {
    const auto [named, measured] = told_apart(best->metric, fastest->metric);
    record.why = "the searcher names trial " + std::to_string(best->trial) + " (" + named +
                 ") as the best; the best measured is trial " + std::to_string(fastest->trial) + " (" + measured + ")";
  }
  return record;
}

}  // namespace dsat::host
