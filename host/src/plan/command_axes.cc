// Looks for placeholders in the command's words.
#include "plan/command_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "command/hugging_face.h"
#include "dsat/base/affix.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::host {
namespace {

// Returns the word of the command with {KEY}; empty: there is none.
std::string word_with(const std::string& key, const Plan& plan) {
  const std::string placeholder = fmt::format("{{{}}}", key);
  const auto names_it = [&](const std::string& word) { return word.find(placeholder) != std::string::npos; };
  const auto word = std::find_if(plan.command.begin(), plan.command.end(), names_it);
  return word == plan.command.end() ? "" : *word;
}

// The values that the space file lists for a key; a range has numbers only.
Json listed_values(const Json& body) {
  const Json values = body.is_object() ? body.value("values", Json::array()) : body;
  return values.is_array() ? values : Json::array();
}

// Each trial gets its own value of these.
bool is_set_by_dsat(std::string_view variable) {
  constexpr std::string_view kNames[] = {"MASTER_ADDR",          "MASTER_PORT",         "RANK",
                                         "LOCAL_RANK",           "WORLD_SIZE",          "PYTHONPATH",
                                         "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                         "CUDA_DEVICE_ORDER"};
  return starts_with(variable, "DSAT_") ||
         std::find(std::begin(kNames), std::end(kNames), variable) != std::end(kNames);
}

// A value is one word: a shell would split it, dsat does not.
void check_words(const std::string& key, const Json& body, const Plan& plan) {
  if (word_with(key, plan) != fmt::format("{{{}}}", key)) return;
  for (const Json& value : listed_values(body)) {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const size_t blank = text.find_first_of(" \t");
    if (!starts_with(text, "-") || blank == std::string::npos) continue;
    throw Error(
        fmt::format("{}: {} lists '{}', which the command would get as one word: write '{}={{{}}}' in the "
                    "command, and list the values alone",
                    plan.space_name, key, text, text.substr(0, blank), key));
  }
}

}  // namespace

void check_command_axes(const Plan& plan) {
  if (!plan.space_file.is_object()) return;
  for (const auto& [key, body] : plan.space_file.items()) {
    check_words(key, body, plan);
    const std::string word = word_with(key, plan);
    const std::string variable = word.substr(0, word.find('='));
    if (variable.size() == word.size() || !is_set_by_dsat(variable)) continue;
    throw Error(
        fmt::format("{}: {} is the variable {} ('{}' of the command), which dsat sets for each trial: leave it "
                    "to dsat",
                    plan.space_name, key, variable, word));
  }
}

std::string use_in_command(const std::string& key, const Plan& plan) {
  for (const auto& [mapped, flag] : plan.arg_mappings) {
    if (mapped == key) return fmt::format("{} of the command", flag);
  }
  const std::string word = word_with(key, plan);
  const std::vector<std::string> of_files = keys_of_files(plan);
  if (!plan.training_file.empty() && std::find(of_files.begin(), of_files.end(), key) != of_files.end()) {
    return fmt::format("'{}' of {}", key, plan.training_file);
  }
  return word.empty() ? "" : fmt::format("'{}' of the command", word);
}

std::vector<std::string> keys_of_files(const Plan& plan) {
  std::vector<std::string> keys;
  if (!plan.space_file.is_object()) return keys;
  for (const auto& [key, body] : plan.space_file.items()) {
    if (!config::lists_are_axes(key) && word_with(key, plan).empty()) keys.push_back(key);
  }
  return keys;
}

void take_first_values(Plan& plan) {
  if (!plan.space_file.is_object()) return;
  for (const auto& [key, body] : plan.space_file.items()) {
    if (word_with(key, plan).empty() || config::find(plan.user_config, key) != nullptr) continue;
    Json values = body;
    for (const char* member : {"values", "range"}) {
      if (body.is_object() && body.contains(member)) values = body[member];
    }
    if (values.is_array() && !values.empty()) config::set(plan.user_config, key, values.front());
  }
}

void tune_command_alone(const std::vector<int>& given_stages, Plan& plan) {
  plan.default_axes = false;
  plan.zero_stages = given_stages.empty() ? std::vector<int>{0} : given_stages;
  const Json axes = plan.space_file.is_object() ? plan.space_file : Json::object();
  for (const auto& [key, body] : axes.items()) {
    const bool is_named = key == "$schema" || key == config::kMicroBatchKey || !use_in_command(key, plan).empty();
    if (is_named) continue;
    throw Error(
        fmt::format("{}: {} is nowhere in the command, which has no DeepSpeed configuration: write {{{}}} where "
                    "its value belongs",
                    plan.space_name, key, key));
  }
  const bool is_listed = plan.space_file.is_object() && plan.space_file.contains(config::kMicroBatchKey);
  const bool follows = !word_with("micro_batch", plan).empty() || !use_in_command(config::kMicroBatchKey, plan).empty();
  if (is_listed || follows || plan.max_micro_batch) return;
  const config::GivenBatchSizes own =
      with_batch_flags(plan.command, plan.hugging_face, plan.arg_mappings, config::read_batch_sizes(plan.user_config));
  plan.min_micro_batch = own.micro_batch.value_or(1);
  plan.max_micro_batch = plan.min_micro_batch;
  config::set(plan.user_config, config::kMicroBatchKey, plan.min_micro_batch);
}

}  // namespace dsat::host
