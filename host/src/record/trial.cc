// The journal's form of a runner's report: a JSON object with every member; missing values are null.
#include "record/trial.h"

#include <algorithm>

#include "base/clock.h"
#include "dsat/config/json_numbers.h"

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

void take_memory(TrialRecord& record, const TrialEnd& end) {
  record.peak_source = end.peak_source;
  record.peak_above_bytes = end.peak_above_bytes;
  record.allocator_retries = end.allocator_retries;
}

Json to_json(const TrialEnd& end) {
  return {{"id", end.id},
          {"attempt", end.attempt},
          {"outcome", static_cast<int>(end.outcome)},
          {"reason", end.reason},
          {"last_line", end.last_line},
          {"from_checkpoint", end.from_checkpoint},
          {"tail", end.tail},
          {"warnings", end.warnings},
          {"metrics", end.metrics},
          {"peak_bytes", or_null(end.peak_bytes)},
          {"peak_source", end.peak_source},
          {"peak_above_bytes", or_null(end.peak_above_bytes)},
          {"allocator_retries", end.allocator_retries},
          {"device_memory_bytes", or_null(end.device_memory_bytes)},
          {"world_size", or_null(end.world_size)},
          {"engine_version", end.engine_version},
          {"torch_version", end.torch_version},
          {"step", end.step},
          {"exit_code", end.exit_code},
          {"term_signal", end.term_signal},
          {"ended_at", end.ended_at}};
}

TrialEnd trial_end_from_json(const Json& json) {
  TrialEnd end;
  end.id = config::whole_number<uint64_t>(json.at("id"));
  end.attempt = config::whole_number<uint32_t>(json.at("attempt"));
  end.outcome = static_cast<Outcome>(config::whole_number<int>(json.at("outcome")));
  end.reason = json.at("reason").get<std::string>();
  end.last_line = json.at("last_line").get<std::string>();
  end.from_checkpoint = json.at("from_checkpoint").get<bool>();
  end.tail = json.at("tail").get<std::vector<std::string>>();
  end.warnings = json.at("warnings").get<std::vector<std::string>>();
  end.metrics = json.at("metrics");
  end.peak_bytes = config::whole_number_at<uint64_t>(json, "peak_bytes");
  end.peak_source = json.at("peak_source").get<std::string>();
  end.peak_above_bytes = config::whole_number_at<uint64_t>(json, "peak_above_bytes");
  end.allocator_retries = config::whole_number<uint64_t>(json.at("allocator_retries"));
  end.device_memory_bytes = config::whole_number_at<uint64_t>(json, "device_memory_bytes");
  end.world_size = config::whole_number_at<int64_t>(json, "world_size");
  end.engine_version = json.at("engine_version").get<std::string>();
  end.torch_version = json.at("torch_version").get<std::string>();
  end.step = config::whole_number<uint64_t>(json.at("step"));
  end.exit_code = config::whole_number<int>(json.at("exit_code"));
  end.term_signal = config::whole_number<int>(json.at("term_signal"));
  end.ended_at = json.at("ended_at").get<std::string>();
  return end;
}

}  // namespace dsat::host
