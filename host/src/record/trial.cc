// The journal's form of a trial's end: a JSON object with every member; missing values are null.
#include "record/trial.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "dsat/config/json_numbers.h"
#include "outputs/curve.h"

namespace dsat::host {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> latest_moment(const TrialRecord& record) {
  std::optional<std::chrono::system_clock::time_point> latest;
  for (const std::string* text : {&record.submitted_at, &record.started_at, &record.ended_at}) {
    latest = std::max(latest, parse_rfc3339(*text));
  }
  return latest;
}

void take_end(Trial& trial, TrialEnd end) {
  TrialRecord& record = trial.record;
  record.outcome = end.outcome;
  record.reason = std::move(end.reason);
  record.metrics = end.outcome == Outcome::completed ? std::move(end.metrics) : Json();
  record.curve = std::move(end.curve);
  record.peak_bytes = end.peak_bytes;
  record.peak_source = std::move(end.peak_source);
  record.peak_above_bytes = end.peak_above_bytes;
  record.allocator_retries = end.allocator_retries;
  record.ended_at = std::move(end.ended_at);
  trial.end = std::move(static_cast<EndDetails&>(end));
}

namespace {

Json to_json(const Deviation& deviation) {
  return {{"key", deviation.key}, {"had", deviation.had}, {"of_data_set", deviation.of_data_set}};
}

}  // namespace

Json end_to_json(const Trial& trial) {
  const TrialRecord& record = trial.record;
  const EndDetails& end = *trial.end;
  return {{"id", record.id},
          {"attempt", record.attempt},
          {"outcome", static_cast<int>(*record.outcome)},
          {"reason", record.reason},
          {"last_line", end.last_line},
          {"ran_short", end.ran_short},
          {"of_host", end.of_host},
          {"from_checkpoint", end.from_checkpoint},
          {"deviation", end.deviation ? to_json(*end.deviation) : Json()},
          {"inputs", end.inputs},
          {"tail", end.tail},
          {"warnings", end.warnings},
          {"metrics", nullptr},  // the row has them
          {"curve", to_json(record.curve)},
          {"peak_bytes", or_null(record.peak_bytes)},
          {"peak_source", record.peak_source},
          {"peak_above_bytes", or_null(record.peak_above_bytes)},
          {"allocator_retries", record.allocator_retries},
          {"device_memory_bytes", or_null(end.device_memory_bytes)},
          {"world_size", or_null(end.world_size)},
          {"engine_version", end.engine_version},
          {"torch_version", end.torch_version},
          {"driver_version", end.driver_version},
          {"checkpoint_outside", end.checkpoint_outside},
          {"step", end.step},
          {"exit_code", end.exit_code},
          {"term_signal", end.term_signal},
          {"ended_at", record.ended_at}};
}

void read_end(const Json& json, Trial& trial) {
  TrialRecord& record = trial.record;
  if (config::whole_number<uint64_t>(json.at("id")) != record.id && !record.duplicate_of) {
    throw Error(DSAT_DATA_LOSS, "its end is that of another trial");
  }
  if (!record.outcome) throw Error(DSAT_DATA_LOSS, "its end has no outcome");
  record.curve = curve_from_json(json.value("curve", Json()));  // journals of earlier versions have none
  record.peak_source = json.at("peak_source").get<std::string>();
  record.peak_above_bytes = config::whole_number_at<uint64_t>(json, "peak_above_bytes");
  record.allocator_retries = config::whole_number<uint64_t>(json.at("allocator_retries"));
  EndDetails& end = trial.end.emplace();
  end.last_line = json.at("last_line").get<std::string>();
  end.ran_short = json.value("ran_short", false);  // an older journal has none
  end.of_host = json.value("of_host", false);      // nor that
  end.from_checkpoint = json.at("from_checkpoint").get<bool>();
  const Json deviation = json.value("deviation", Json());  // journals of earlier versions have none, and no inputs
  if (!deviation.is_null()) {
    end.deviation = Deviation{deviation.at("key").get<std::string>(), deviation.at("had").get<int64_t>(),
                              deviation.at("of_data_set").get<bool>()};
  }
  end.inputs = json.value("inputs", "");
  end.tail = json.at("tail").get<std::vector<std::string>>();
  end.warnings = json.at("warnings").get<std::vector<std::string>>();
  end.device_memory_bytes = config::whole_number_at<uint64_t>(json, "device_memory_bytes");
  end.world_size = config::whole_number_at<int64_t>(json, "world_size");
  end.engine_version = json.at("engine_version").get<std::string>();
  end.torch_version = json.at("torch_version").get<std::string>();
  end.driver_version = json.value("driver_version", std::string());
  end.checkpoint_outside = json.value("checkpoint_outside", std::string());
  end.step = config::whole_number<uint64_t>(json.at("step"));
  end.exit_code = config::whole_number<int>(json.at("exit_code"));
  end.term_signal = config::whole_number<int>(json.at("term_signal"));
}

}  // namespace dsat::host
