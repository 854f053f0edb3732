// The host's rules that the test bench (dsat/testing.h) keeps, one function each.
//
// Threading: pure functions. Errors: a wrong option throws dsat::Error.
#ifndef DSAT_TESTING_RULES_H_
#define DSAT_TESTING_RULES_H_

#include <algorithm>
#include <cmath>
#include <string>

#include "dsat/searcher.h"

namespace dsat::testing::rules {

// The number of duplicates in a row after which a request is refused.
inline constexpr int64_t kFruitlessRequests = 1000;

// Has the strategy all functions that the ABI requires?
inline bool is_complete(const dsat_strategy* strategy) {
  return strategy != nullptr && DSAT_HAS(strategy, dsat_strategy, destroy) && strategy->start != nullptr &&
         strategy->on_result != nullptr && strategy->on_trial_exited != nullptr && strategy->destroy != nullptr;
}

// Fills in missing limits as the host does: at least one slot, and enough open trials to keep the slots busy.
inline Study complete(Study study) {
  if (!study.base_config.is_object()) study.base_config = Json::object();
  Limits& limits = study.limits;
  for (int64_t* count : {&limits.max_concurrent_trials, &limits.slots, &limits.slots_per_trial,
                         &limits.data_parallel_size, &limits.open_trials}) {
    *count = std::max<int64_t>(1, *count);
  }
  limits.open_trials = std::max(limits.open_trials, limits.max_concurrent_trials);
  return study;
}

// The number at a place of a configuration. 0: no number there, or T cannot hold it.
template <class T>
T whole_number(const Json& config, const Json::json_pointer& place) {
  if (!config.contains(place)) return 0;
  const Json& value = config.at(place);
  return value.is_number() && detail::is_held_by<T>(value) ? value.get<T>() : T{0};
}

// The same value with sorted keys. A number without a fraction becomes an integer.
inline nlohmann::json normalised(const Json& value) {
  if (value.is_object()) {
    nlohmann::json sorted = nlohmann::json::object();
    for (const auto& [key, member] : value.items()) sorted[key] = normalised(member);
    return sorted;
  }
  if (value.is_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Json& element : value) list.push_back(normalised(element));
    return list;
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    const bool whole = number == std::floor(number) && number >= -0x1p63 && number < 0x1p63;
    return whole ? nlohmann::json(static_cast<int64_t>(number)) : nlohmann::json(number);
  }
  return nlohmann::json(value);
}

// Does this trial measure the model's size only?
inline bool measures_the_model(const Json& config) {
  const auto pointer = "/autotuning/model_info/profile"_json_pointer;
  return config.contains(pointer) && config[pointer] == true;
}

// Two trials are the same if and only if these texts are equal (docs/configuration.md, "Identity"). Batch sizes that
// follow from other ones are left out, so that a configuration with all of them equals one without.
inline std::string identity(const Json& config, bool global_batch) {
  nlohmann::json sorted = normalised(config);
  sorted.erase("train_batch_size");
  for (const char* key : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    if (!sorted.contains(key) || !sorted[key].is_number()) sorted[key] = 1;
  }
  if (global_batch) sorted.erase("gradient_accumulation_steps");
  // In the section autotuning only the size of the trial counts.
  const nlohmann::json section = sorted.value("autotuning", nlohmann::json());
  sorted.erase("autotuning");
  if (section.is_object() && section.contains("num_gpus") && section.contains("num_nodes")) {
    sorted["autotuning"] = {{"num_gpus", section["num_gpus"]}, {"num_nodes", section["num_nodes"]}};
  }
  const std::string text = sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return measures_the_model(config) ? text + " model_info" : text;
}

// The problem with a value of a declared option; empty: none.
inline std::string option_problem(const Json& option, const Json& value) {
  const std::string type = option.at("type").get<std::string>();
  const bool fits = type == "int"      ? value.is_number_integer()
                    : type == "number" ? value.is_number()
                    : type == "bool"   ? value.is_boolean()
                                       : value.is_string();
  if (!fits) return "no " + type;
  if (option.contains("min") && value < option["min"]) return "below its min " + option["min"].dump();
  if (option.contains("max") && value > option["max"]) return "above its max " + option["max"].dump();
  const Json choices = option.value("choices", Json());
  const bool offered = type != "choice" || std::find(choices.begin(), choices.end(), value) != choices.end();
  return offered ? "" : "none of its choices " + choices.dump();
}

// A value for every declared option: the given value, else the default.
inline Json option_values(const Json& declared, const Json& given) {
  Json values = Json::object();
  for (const Json& option : declared) {
    const std::string name = option.at("name").get<std::string>();
    values[name] = given.contains(name) ? given[name] : option.at("default");
    const std::string problem = option_problem(option, values[name]);
    if (!problem.empty()) throw Error("option '" + name + "': " + values[name].dump() + " is " + problem);
  }
  for (const auto& [name, value] : given.items()) {
    if (!values.contains(name)) throw Error(DSAT_NOT_FOUND, "the strategy has no option '" + name + "'");
  }
  return values;
}

// The problem with a profile; empty: none. The host checks the optional members too (docs/profile.md).
inline std::string profile_problem(const Json& profile) {
  if (!profile.is_object()) return "profile_json is not a JSON object";
  for (const char* needed : {"schema", "num_params"}) {
    if (!profile.contains(needed)) return std::string("it has no ") + needed;
  }
  if (profile["schema"] != 1) return "schema: " + profile["schema"].dump() + " is no schema that this version knows: 1";
  const Json& size = profile["num_params"];
  if (!size.is_number() || size < 1) return "num_params: " + size.dump() + " is no number of at least 1";
  const Json trained = profile.value("trainable_num_params", size);
  return trained <= size ? "" : "trainable_num_params: " + trained.dump() + " is above num_params " + size.dump();
}

// -1: the host ended the command, or no command ran.
inline int32_t exit_code_of(Outcome outcome) {
  if (outcome == Outcome::completed) return 0;
  return outcome == Outcome::failed || outcome == Outcome::out_of_memory ? 1 : -1;
}

}  // namespace dsat::testing::rules

#endif  // DSAT_TESTING_RULES_H_
