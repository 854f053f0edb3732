// Events and ops in the journal's form. Resuming compares the text of an op byte for byte, so members have a fixed
// order and are written only where they have a meaning.
#include <fmt/format.h>

#include "dsat/config/json_numbers.h"
#include "plugin/strategy.h"

namespace dsat::host {
namespace {

constexpr const char* kOpNames[] = {"create_trial", "stop_trial", "finish", "set_profile"};
constexpr const char* kEventNames[] = {"start", "result", "exited"};

template <class Kind, size_t N>
Kind kind_from(const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Kind>(i);
  }
  throw Error(DSAT_DATA_LOSS, fmt::format("unknown kind '{}' in the journal", name));
}

}  // namespace

Json to_json(const Op& op) {
  Json json{{"op", kOpNames[static_cast<size_t>(op.kind)]}};
  if (op.trial) json["trial"] = *op.trial;
  if (op.kind == Op::Kind::create_trial) {
    if (op.refused) json["refused"] = true;
    if (op.repeat) json["repeat"] = true;
    if (op.parent) json["parent"] = *op.parent;
    json["overrides"] = op.overrides;
    json["note"] = op.note;
  }
  if (op.kind == Op::Kind::finish) json["reason"] = op.reason;
  if (op.kind == Op::Kind::set_profile) json["profile"] = op.profile;
  return json;
}

Json to_json(const std::vector<Op>& ops) {
  Json list = Json::array();
  for (const Op& op : ops) list.push_back(to_json(op));
  return list;
}

Op op_from_json(const Json& json) {
  Op op;
  op.kind = kind_from<Op::Kind>(kOpNames, json.at("op").get<std::string>());
  op.trial = config::whole_number_at<uint64_t>(json, "trial");
  op.parent = config::whole_number_at<uint64_t>(json, "parent");
  op.refused = json.value("refused", false);
  op.repeat = json.value("repeat", false);
  op.overrides = json.value("overrides", Json());
  op.note = json.value("note", "");
  op.reason = json.value("reason", "");
  op.profile = json.value("profile", Json());
  return op;
}

Json to_json(const StrategyEvent& event) {
  Json json{{"event", kEventNames[static_cast<size_t>(event.kind)]}};
  switch (event.kind) {
    case StrategyEvent::Kind::start:
      json["study"] = event.study;
      break;
    case StrategyEvent::Kind::result:
      json["trial"] = event.trial;
      json["step"] = event.step;
      json["metrics"] = event.metrics;
      break;
    case StrategyEvent::Kind::exited:
      json["trial"] = event.trial;
      json["outcome"] = event.outcome;
      json["peak_bytes"] = event.peak_bytes;
      if (event.peak_above_bytes != 0) json["peak_above_bytes"] = event.peak_above_bytes;
      if (event.allocator_retries != 0) json["allocator_retries"] = event.allocator_retries;
      json["exit_code"] = event.exit_code;
      json["term_signal"] = event.term_signal;
      json["attempt"] = event.attempt;
      json["reason"] = event.reason;
      break;
  }
  return json;
}

StrategyEvent event_from_json(const Json& json) {
  StrategyEvent event;
  event.kind = kind_from<StrategyEvent::Kind>(kEventNames, json.at("event").get<std::string>());
  event.study = json.value("study", Json());
  event.trial = config::whole_number_at<uint64_t>(json, "trial").value_or(0);
  event.step = config::whole_number_at<uint64_t>(json, "step").value_or(0);
  event.metrics = json.value("metrics", Json::object());
  event.outcome = config::whole_number_at<int>(json, "outcome").value_or(0);
  event.peak_bytes = config::whole_number_at<uint64_t>(json, "peak_bytes").value_or(0);
  event.peak_above_bytes = config::whole_number_at<uint64_t>(json, "peak_above_bytes").value_or(0);
  event.allocator_retries = config::whole_number_at<uint64_t>(json, "allocator_retries").value_or(0);
  event.exit_code = config::whole_number_at<int>(json, "exit_code").value_or(-1);
  event.term_signal = config::whole_number_at<int>(json, "term_signal").value_or(0);
  event.attempt = config::whole_number_at<uint32_t>(json, "attempt").value_or(1);
  event.reason = json.value("reason", "");
  return event;
}

std::string call_of(const StrategyEvent& event) {
  if (event.kind == StrategyEvent::Kind::start) return "start";
  const char* function = event.kind == StrategyEvent::Kind::result ? "on_result" : "on_trial_exited";
  return fmt::format("{} of trial {}", function, event.trial);
}

}  // namespace dsat::host
