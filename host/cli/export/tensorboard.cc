// Writes TensorBoard's event files: one of the experiment at the root, and one for each trial in a folder of its own,
// which is a session of the HParams plugin (tensorboard/plugins/hparams/api.proto and plugin_data.proto have the
// messages).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dsat/base/files.h"
#include "dsat/event_file/event_file.h"
#include "export/files.h"
#include "export/flat_study.h"
#include "export/formats.h"
#include "terminal/times.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStep = 0;

double seconds_of(const std::string& time) { return static_cast<double>(microseconds_of(time)) / 1e6; }

// google.protobuf.Value: 2 number, 3 text, 4 bool.
ProtoMessage value_message(const Json& value) {
  if (value.is_number()) return ProtoMessage().add_double(2, value.get<double>());
  if (value.is_boolean()) return ProtoMessage().add_varint(4, value.get<bool>() ? 1 : 0);
  return ProtoMessage().add_bytes(3, leaf_text(value));
}

std::string scalar_event(double seconds, const std::string& tag, double value) {
  return summary_event(seconds, kStep, ProtoMessage().add_bytes(1, tag).add_float(2, static_cast<float>(value)));
}

// A summary value with the message in its metadata: SummaryMetadata.plugin_data {1 plugin_name, 2 content}, and a
// tensor of one float, because a value needs a tensor. HParamsPluginData: 1 version (0), then one field by the kind.
std::string hparams_event(double seconds, const std::string& tag, int field, const ProtoMessage& message) {
  const ProtoMessage content = ProtoMessage().add_varint(1, 0).add_bytes(field, message.bytes());
  const ProtoMessage plugin = ProtoMessage().add_bytes(1, "hparams").add_bytes(2, content.bytes());
  const ProtoMessage metadata = ProtoMessage().add_bytes(1, plugin.bytes());
  const ProtoMessage dimension = ProtoMessage().add_varint(1, 1),
                     shape = ProtoMessage().add_bytes(2, dimension.bytes());
  const ProtoMessage tensor = ProtoMessage().add_varint(1, 1).add_bytes(2, shape.bytes()).add_float(5, 0);
  return summary_event(
      seconds, kStep,
      ProtoMessage().add_bytes(1, "_hparams_/" + tag).add_bytes(8, tensor.bytes()).add_bytes(9, metadata.bytes()));
}

// The values of the tuned keys in one trial's configuration.
std::vector<Leaf> hyperparameters(const host::TrialRecord& trial, const std::vector<std::string>& keys) {
  std::vector<Leaf> values;
  for (const Leaf& leaf : leaves_of(trial.config)) {
    if (std::find(keys.begin(), keys.end(), leaf.first) != keys.end() && !leaf.second.is_null()) values.push_back(leaf);
  }
  return values;
}

// HParamInfo: 1 name, 4 type (1 text, 2 bool, 3 number), 5 all values. Mixed types are text.
ProtoMessage hyperparameter_info(const std::string& key, const std::vector<Json>& values) {
  const auto all = [&](auto is) { return std::all_of(values.begin(), values.end(), is); };
  const bool number = all([](const Json& v) { return v.is_number(); });
  const bool boolean = all([](const Json& v) { return v.is_boolean(); });
  ProtoMessage domain;
  for (const Json& value : values) domain.add_bytes(1, value_message(value).bytes());
  return ProtoMessage().add_bytes(1, key).add_varint(4, number ? 3 : boolean ? 2 : 1).add_bytes(5, domain.bytes());
}

// Experiment: 1 description, 3 time_created_secs, 4 hparam_infos, 5 metric_infos {1 name {2 tag}}, 6 name.
ProtoMessage experiment(const host::StudyFacts& facts, const std::vector<std::string>& keys) {
  ProtoMessage message;
  message.add_bytes(6, name_of(facts)).add_double(3, seconds_of(facts.progress.started_at));
  for (const std::string& key : keys) {
    std::vector<Json> values;
    for (const size_t i : exported_trials(facts)) {
      for (const Leaf& leaf : hyperparameters(facts.record.trials[i], {key})) {
        if (std::find(values.begin(), values.end(), leaf.second) == values.end()) values.push_back(leaf.second);
      }
    }
    if (!values.empty()) message.add_bytes(4, hyperparameter_info(key, values).bytes());
  }
  std::vector<std::string> tags{facts.metric};
  for (const size_t i : exported_trials(facts)) {
    for (const auto& [tag, value] : numbers_of(facts.record.trials[i])) {
      if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(tag);
    }
  }
  for (const std::string& tag : tags) {
    const ProtoMessage name = ProtoMessage().add_bytes(2, tag);
    message.add_bytes(5, ProtoMessage().add_bytes(1, name.bytes()).bytes());
  }
  return message;
}

std::string session(const host::StudyFacts& facts, size_t index, const std::vector<std::string>& keys) {
  const host::TrialRecord& trial = facts.record.trials[index];
  const double start = seconds_of(start_of(trial)), end = seconds_of(trial.ended_at);
  // SessionStartInfo: 1 hparams, a map of {1 key, 2 value}; 5 start_time_secs.
  ProtoMessage begun;
  for (const auto& [key, value] : hyperparameters(trial, keys)) {
    begun.add_bytes(1, ProtoMessage().add_bytes(1, key).add_bytes(2, value_message(value).bytes()).bytes());
  }
  begun.add_double(5, start);
  std::string file = version_event(start) + hparams_event(start, "session_start_info", 3, begun);
  for (const auto& [tag, value] : numbers_of(trial)) file += scalar_event(end, tag, value);
  if (!trial.outcome) return file;
  // SessionEndInfo: 1 status (1 success, 2 failure), 2 end_time_secs.
  const uint64_t status = trial.outcome == host::Outcome::completed ? 1 : 2;
  return file + hparams_event(end, "session_end_info", 4, ProtoMessage().add_varint(1, status).add_double(2, end));
}

}  // namespace

void write_tensorboard(const host::StudyFacts& facts, const fs::path& folder) {
  const std::vector<std::string> keys = tuned_keys(facts);
  const double begin = seconds_of(facts.progress.started_at);
  make_folder(folder);
  // The names are fixed, so that a new export replaces the old one. A trial's file grows in place, because TensorBoard
  // follows an open file and never opens the same name twice.
  constexpr const char* kFile = "events.out.tfevents.0.dsat";
  write_export(folder / kFile, version_event(begin) + hparams_event(begin, "experiment", 2, experiment(facts, keys)));
  for (const size_t i : exported_trials(facts)) {
    const fs::path run = folder / fmt::format("trial_{:05}", facts.record.trials[i].id);
    make_folder(run);
    extend_export(run / kFile, session(facts, i, keys));
  }
}

}  // namespace dsat::cli
