// One-way analysis of variance for each key: the share of the variance of the metric's logarithm between the key's
// values, minus the share due to chance (epsilon squared).
#include <algorithm>
#include <cmath>
#include <map>

#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "facts/sections.h"

namespace dsat::host {
namespace {

struct Sample {
  Json value;
  double metric = 0;
};

constexpr size_t kFewestTrials = 4, kMostValues = 6, kRanges = 4;

// The value follows from other keys.
bool is_derived(const std::string& key) { return key == "train_batch_size"; }

std::map<std::string, std::vector<Sample>> samples_by_key(const StudyFacts& facts) {
  std::map<std::string, std::vector<Sample>> samples;
  for (const TrialRecord& record : facts.record.trials) {
    const std::optional<double>& value = facts.trials[record.id].value;
    if (!value || *value <= 0 || record.duplicate_of) continue;
    Json config = record.config;
    config::keep_only_world(config);
    for (auto& [key, leaf] : config::leaves_of(config)) {
      if (!is_derived(key)) samples[key].push_back({std::move(leaf), *value});
    }
  }
  return samples;
}

std::string range_text(const Json& low, const Json& high) {
  return low == high ? low.dump() : low.dump() + " to " + high.dump();
}

// Numbers with many values are divided into ranges with about as many trials each; equal values stay together.
std::vector<std::vector<Sample>> in_ranges(std::vector<Sample> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.value.get<double>() < b.value.get<double>(); });
  const size_t share = (samples.size() + kRanges - 1) / kRanges;
  std::vector<std::vector<Sample>> groups;
  for (Sample& sample : samples) {
    const bool goes_on =
        !groups.empty() && (groups.back().size() < share || groups.back().back().value == sample.value);
    if (!goes_on) groups.emplace_back();
    groups.back().push_back(std::move(sample));
  }
  for (std::vector<Sample>& group : groups) {
    const Json range = range_text(group.front().value, group.back().value);
    for (Sample& sample : group) sample.value = range;
  }
  return groups;
}

std::vector<std::vector<Sample>> groups_of(std::vector<Sample> samples) {
  std::map<std::string, std::vector<Sample>> by_value;
  for (const Sample& sample : samples) by_value[sample.value.dump()].push_back(sample);
  const bool numbers = std::all_of(samples.begin(), samples.end(), [](const Sample& s) { return s.value.is_number(); });
  if (numbers && by_value.size() > kMostValues) return in_ranges(std::move(samples));
  std::vector<std::vector<Sample>> groups;
  for (auto& [text, group] : by_value) groups.push_back(std::move(group));
  if (numbers) {
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a[0].value.template get<double>() < b[0].value.template get<double>();
    });
  }
  return groups;
}

double explained_share(const std::vector<std::vector<Sample>>& groups) {
  double sum = 0, count = 0;
  for (const auto& group : groups) {
    for (const Sample& sample : group) sum += std::log(sample.metric), ++count;
  }
  const double mean = sum / count;
  double total = 0, within = 0;
  for (const auto& group : groups) {
    double group_sum = 0;
    for (const Sample& sample : group) group_sum += std::log(sample.metric);
    const double group_mean = group_sum / static_cast<double>(group.size());
    for (const Sample& sample : group) {
      total += std::pow(std::log(sample.metric) - mean, 2);
      within += std::pow(std::log(sample.metric) - group_mean, 2);
    }
  }
  const double values = static_cast<double>(groups.size());
  if (total <= 0 || count <= values) return 0;
  return std::clamp(1 - (within / (count - values)) / (total / (count - 1)), 0.0, 1.0);
}

KnobValue summed_up(const std::vector<Sample>& group, bool maximise) {
  KnobValue value{group[0].value, static_cast<int>(group.size()), 0, group[0].metric};
  for (const Sample& sample : group) {
    value.mean += sample.metric / static_cast<double>(group.size());
    value.best = maximise ? std::max(value.best, sample.metric) : std::min(value.best, sample.metric);
  }
  return value;
}

}  // namespace

std::vector<Knob> knobs_of(const StudyFacts& facts) {
  std::vector<Knob> knobs;
  for (auto& [key, samples] : samples_by_key(facts)) {
    if (samples.size() < kFewestTrials) continue;
    const std::vector<std::vector<Sample>> groups = groups_of(std::move(samples));
    if (groups.size() < 2) continue;
    Knob knob{key, explained_share(groups), {}};
    for (const auto& group : groups) knob.values.push_back(summed_up(group, facts.maximise));
    knobs.push_back(std::move(knob));
  }
  std::stable_sort(knobs.begin(), knobs.end(), [](const Knob& a, const Knob& b) { return a.share > b.share; });
  return knobs;
}

}  // namespace dsat::host
