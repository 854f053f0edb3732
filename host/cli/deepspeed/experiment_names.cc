// Builds a name from the stage, the accumulation, the micro batch and the initials of each further key. Booleans and
// large numbers are written as DeepSpeed writes them.
#include "deepspeed/experiment_names.h"

#include <fmt/format.h>

#include "dsat/base/numbers.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::cli {
namespace {

// "reduce_bucket_size": "rbs".
std::string initials(const std::string& key) {
  std::string letters;
  bool begins = true;
  for (const char c : key) {
    if (begins) letters += c;
    begins = c == '_' || c == '.';
  }
  return letters;
}

std::string value_text(const Json& value) {
  constexpr double kLongest = 9000;  // a larger number is written with an exponent
  if (value.is_boolean()) return value.get<bool>() ? "T" : "F";
  if (value.is_number() && value.get<double>() > kLongest) {
    std::string text = fmt::format("{:.1e}", value.get<double>());
    // Two values that differ only in later digits must not look alike.
    return parse_number(text) == value.get<double>() ? text : value.dump();
  }
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  for (char& c : text) {
    if (c == '/' || c == ' ') c = '-';  // the name is that of a folder
  }
  return text;
}

void add_keys(const Json& overrides, const std::string& prefix, std::string& name) {
  for (const auto& item : overrides.items()) {
    const std::string key = prefix + item.key();
    if (key == "zero_optimization.stage" || key == config::kMicroBatchKey || key == config::kAccumulationKey) continue;
    if (item.value().is_object()) {
      add_keys(item.value(), key + ".", name);
      continue;
    }
    // The two offload sections have the same keys, so the section's letters go before theirs (opd, ood).
    const size_t offload = key.find("offload_");
    const size_t from = offload != std::string::npos ? offload : key.rfind('.') + 1;
    name += fmt::format("_{}{}", initials(key.substr(from)), value_text(item.value()));
  }
}

std::string number_at(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  return value == nullptr ? "1" : value_text(*value);
}

}  // namespace

bool is_experiment(const host::TrialRecord& trial) {
  return !trial.duplicate_of && trial.outcome != host::Outcome::invalid_config;
}

bool is_model_information(const host::TrialRecord& trial) {
  const Json* profile = config::find(trial.overrides, "autotuning.model_info.profile");
  return profile != nullptr && *profile == true;
}

int stage_of(const host::TrialRecord& trial) {
  try {
    return config::zero_stage(trial.config);
  } catch (const Error&) {
    return 0;
  }
}

std::string experiment_name(const host::TrialRecord& trial) {
  if (is_model_information(trial)) return "profile_model_info";
  std::string name =
      fmt::format("z{}_gas{}_tmbspg{}", stage_of(trial), number_at(trial.config, config::kAccumulationKey),
                  number_at(trial.config, config::kMicroBatchKey));
  add_keys(trial.overrides, "", name);
  return name;
}

const std::string& ExperimentNames::name(const host::TrialRecord& trial) {
  const auto known = names_.find(trial.id);
  if (known != names_.end()) return known->second.name;
  const std::string stem = experiment_name(trial);
  std::string name = stem;
  if (!taken_.insert(name).second) {
    name += fmt::format("_{}", trial.id);
    taken_.insert(name);
  }
  return names_.emplace(trial.id, Named{stem, std::move(name)}).first->second.name;
}

std::vector<std::string> ExperimentNames::forget_others(const host::TrialRecord& trial) {
  std::vector<std::string> forgotten;
  const auto known = names_.find(trial.id);
  if (known == names_.end() || known->second.stem == experiment_name(trial)) return forgotten;
  for (auto it = known; it != names_.end(); it = names_.erase(it)) {
    taken_.erase(it->second.name);
    forgotten.push_back(std::move(it->second.name));
  }
  return forgotten;
}

}  // namespace dsat::cli
