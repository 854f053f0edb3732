// Keeps the deviations by key, the values with which trials completed, and the shapes that engines were fed.
#include "finals/ignored_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "dsat/config/rules.h"

namespace dsat::host {
namespace {

constexpr const char* kStageKey = "zero_optimization.stage";

std::optional<int64_t> value_of(const Json& config, const std::string& key) {
  if (key == kStageKey) return config::zero_stage(config);
  if (key == config::kAccumulationKey) return config::whole_number_at<int64_t>(config, key).value_or(1);
  if (key != kDataParallelSize) return config::whole_number_at<int64_t>(config, key);
  const auto batch = config::whole_number_at<int64_t>(config, config::kTrainBatchKey);
  const int64_t samples = config::whole_number_at<int64_t>(config, config::kMicroBatchKey).value_or(0) *
                          config::whole_number_at<int64_t>(config, config::kAccumulationKey).value_or(1);
  return batch && samples > 0 ? std::optional(*batch / samples) : std::nullopt;
}

// A script may take the value in a word of another form than a flag.
std::string placeholder_for(const std::string& key) {
  if (key == config::kMicroBatchKey) return ", or {micro_batch} in its place in COMMAND";
  if (key == config::kAccumulationKey) return ", or {accumulation} in its place in COMMAND";
  return "";
}

}  // namespace

void IgnoredConfiguration::add(const Trial& trial) {
  batches_.add(trial);
  const TrialRecord& record = trial.record;
  if (trial.model_info || record.duplicate_of || !trial.end) return;
  const EndDetails& end = *trial.end;
  if (end.deviation && end.deviation->of_data_set) return;
  if (end.deviation) {
    Deviations& deviations = by_key_[end.deviation->key];
    deviations.trials.push_back(trial.id());
    deviations.had.insert(end.deviation->had);
  } else if (record.outcome == Outcome::completed) {
    for (const char* key : {config::kMicroBatchKey, config::kAccumulationKey, kStageKey, kDataParallelSize}) {
      if (const auto value = value_of(record.config, key)) followed_[key].insert(*value);
    }
  } else {
    return;
  }
  const auto micro_batch = value_of(record.config, config::kMicroBatchKey);
  if (micro_batch && !end.inputs.empty()) inputs_[end.inputs].emplace(*micro_batch, trial.id());
}

// A script that completed with another value follows the key, at least up to a limit of its own.
std::optional<IgnoredKey> IgnoredConfiguration::from_deviations() const {
  for (const auto& [key, deviations] : by_key_) {
    if (deviations.trials.size() < 2 || deviations.had.size() > 1) continue;
    const int64_t had = *deviations.had.begin();
    const auto followed = followed_.find(key);
    // Small micro batches may divide what the script has of its own: they prove nothing.
    const bool is_batch = key == config::kMicroBatchKey;
    const auto follows = [&](int64_t value) { return is_batch ? had % value != 0 : value != had; };
    const bool is_followed =
        followed != followed_.end() && std::any_of(followed->second.begin(), followed->second.end(), follows);
    if (is_followed || (is_batch && inputs_.size() > 1)) continue;
    return IgnoredKey{
        key, had,
        fmt::format("trials {} and {} ran with {}{}, whatever their configurations have", deviations.trials[0],
                    deviations.trials[1], is_batch ? "batches of " : key + " ", had)};
  }
  return std::nullopt;
}

std::optional<IgnoredKey> IgnoredConfiguration::from_inputs() const {
  if (inputs_.size() != 1) return std::nullopt;
  const auto& [shapes, trials] = *inputs_.begin();
  if (trials.size() < 2) return std::nullopt;
  const auto& [small, first] = *trials.begin();
  const auto& [large, second] = *trials.rbegin();
  const auto deviations = by_key_.find(config::kMicroBatchKey);
  const bool is_known = deviations != by_key_.end() && deviations->second.had.size() == 1;
  return IgnoredKey{config::kMicroBatchKey, is_known ? std::optional(*deviations->second.had.begin()) : std::nullopt,
                    fmt::format("DeepSpeed's engine got tensors of the same shape ({}) at micro batch {} (trial {}) "
                                "and {} (trial {})",
                                shapes, small, first, large, second)};
}

std::optional<IgnoredKey> IgnoredConfiguration::find() const {
  if (auto found = from_deviations()) return found;
  if (auto found = from_inputs()) return found;
  if (auto text = batches_.proof()) return IgnoredKey{config::kMicroBatchKey, std::nullopt, std::move(*text)};
  return std::nullopt;
}

std::string describe(const IgnoredKey& ignored, const std::string& flag) {
  const std::string begin =
      fmt::format("{}: the script does not follow its configuration, so its figures mean nothing", ignored.evidence);
  if (ignored.key == kDataParallelSize) {
    return fmt::format("{}; let it use all processes that it is given, or give --slots-per-trial {}", begin,
                       ignored.had.value_or(1));
  }
  return fmt::format("{}; let it read the file that it is given, or hand the value over: --arg-mapping {}={}{}", begin,
                     ignored.key, flag.empty() ? "--FLAG" : flag, flag.empty() ? placeholder_for(ignored.key) : "");
}

std::optional<std::string> proof_of_ignored_configuration(const std::vector<Trial>& trials) {
  IgnoredConfiguration script;
  for (const Trial& trial : trials) script.add(trial);
  const std::optional<IgnoredKey> found = script.find();
  return found ? std::optional(describe(*found, "")) : std::nullopt;
}

}  // namespace dsat::host
