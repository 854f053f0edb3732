// Writes one line for each trial that ran and has an outcome, with the keys that the study tuned, its precision and its
// optimizer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "dsat/base/utf8.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"
#include "dsat/host/record.h"
#include "dsat/host/simulation.h"
#include "sim/csv.h"
#include "sim/trace_columns.h"

namespace dsat::host {

using sim::kMeasured;
using sim::kStageKey;

namespace {

// Whether the trial ran itself, and its outcome is due to its configuration.
bool is_recorded(const TrialRecord& trial) {
  if (!trial.outcome || trial.duplicate_of || !trial.started()) return false;
  return *trial.outcome == Outcome::completed || *trial.outcome == Outcome::out_of_memory ||
         *trial.outcome == Outcome::failed || *trial.outcome == Outcome::timed_out;
}

bool is_model_info(const TrialRecord& trial) {
  const Json* profile = config::find(trial.overrides, "autotuning.model_info.profile");
  return profile != nullptr && *profile == true;
}

std::string cell(const Json* value) {
  if (value == nullptr || value->is_null()) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

void add_leaves(const Json& node, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& item : node.items()) {
    const std::string key = prefix + item.key();
    if (item.value().is_object()) {
      add_leaves(item.value(), key + ".", keys);
    } else if (key.rfind("autotuning.", 0) != 0 && key != kStageKey && key != config::kMicroBatchKey &&
               key != config::kTrainBatchKey && std::find(keys.begin(), keys.end(), key) == keys.end()) {
      keys.push_back(key);
    }
  }
}

// Adds untuned keys that decide the model states; without them a replay would assume fp32.
void add_given_keys(const Json& config, std::vector<std::string>& keys) {
  for (const char* key : {"bf16.enabled", "bfloat16.enabled", "fp16.enabled", "optimizer.type"}) {
    const Json* value = config::find(config, key);
    const bool is_given = value != nullptr && value->is_primitive() && !value->is_null() && *value != "auto";
    if (is_given && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.emplace_back(key);
  }
}

// Returns every key that a trial overrode, and the keys that decide its memory.
std::vector<std::string> tuned_keys(const StudyRecord& study) {
  std::vector<std::string> keys;
  for (const TrialRecord& trial : study.trials) {
    if (!is_recorded(trial)) continue;
    add_leaves(trial.overrides, "", keys);
    add_given_keys(trial.config, keys);
  }
  // A trace cannot have keys that DeepSpeed does not know.
  const auto foreign = [](const std::string& key) {
    Json probe = Json::object();
    config::set(probe, key, nullptr);
    return !config::unknown_keys(probe).empty();
  };
  keys.erase(std::remove_if(keys.begin(), keys.end(), foreign), keys.end());
  return keys;
}

// Returns what the trial measured, or else the study's value.
std::string device_memory(const StudyRecord& study, const TrialRecord& trial) {
  const std::string own = trial.metrics.is_object() ? cell(config::find(trial.metrics, "device_memory")) : "";
  return own.empty() && study.profile.is_object() ? cell(config::find(study.profile, "device_memory_bytes")) : own;
}

double seconds_since_epoch(const std::string& rfc3339) {
  std::tm utc{};
  const char* fraction = strptime(rfc3339.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  return fraction == nullptr ? NAN : static_cast<double>(timegm(&utc)) + std::strtod(fraction, nullptr);
}

// A trial of a simulated study names its devices as a range.
std::string slots_of(const StudyRecord& study, const TrialRecord& trial) {
  const std::optional<config::World> world = config::tuned_world(trial.config);
  return world ? fmt::to_string(world->size()) : cell(config::find(study.study, "slots_per_trial"));
}

std::string seconds_of(const TrialRecord& trial) {
  const double seconds = seconds_since_epoch(trial.ended_at) - seconds_since_epoch(trial.started_at);
  return std::isfinite(seconds) && seconds >= 0 ? Json(seconds).dump() : "";
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& text : cells) line += (line.empty() ? "" : ",") + sim::csv_field(printable_line(text));
  return line + "\n";
}

}  // namespace

std::string trace_of(const StudyRecord& study) {
  const std::vector<std::string> keys = tuned_keys(study);
  std::vector<std::string> header{"outcome", "model_info", "slots", kStageKey, config::kMicroBatchKey};
  header.insert(header.end(), keys.begin(), keys.end());
  header.insert(header.end(), std::begin(kMeasured), std::end(kMeasured));
  header.insert(header.end(), {"peak_bytes", "device_memory", "seconds", "reason"});
  std::string text = line_of(header);
  for (const TrialRecord& trial : study.trials) {
    if (!is_recorded(trial)) continue;
    const bool model_info = is_model_info(trial);
    std::vector<std::string> cells{to_string(*trial.outcome), model_info ? "1" : "", slots_of(study, trial),
                                   fmt::to_string(config::zero_stage(trial.config)),
                                   cell(config::find(trial.config, config::kMicroBatchKey))};
    for (const std::string& key : keys) cells.push_back(model_info ? "" : cell(config::find(trial.config, key)));
    for (const char* name : kMeasured) {
      cells.push_back(trial.metrics.is_object() ? cell(config::find(trial.metrics, name)) : "");
    }
    cells.push_back(trial.peak_bytes ? fmt::to_string(*trial.peak_bytes) : "");
    cells.push_back(model_info ? device_memory(study, trial) : "");
    cells.push_back(seconds_of(trial));
    cells.push_back(trial.reason);
    text += line_of(cells);
  }
  return text;
}

}  // namespace dsat::host
