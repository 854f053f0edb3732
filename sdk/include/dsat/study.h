// A strategy's view of its study: dsat_study.study_json with types. docs/study.md describes each field.
#ifndef DSAT_STUDY_H_
#define DSAT_STUDY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat {

struct Limits {
  int64_t max_trials = 0;
  int64_t max_concurrent_trials = 0;  // trials that the slots can run at once
  int64_t open_trials = 0;            // trials that a strategy should keep open, so that no slot is idle
  int64_t slots = 0;
  int64_t slots_per_trial = 0;
  int64_t data_parallel_size = 0;
  int64_t profile_trials = 3;  // the profiler's trials; at most twice as many if some run out of memory
};

struct Study {
  uint64_t seed = 0;
  std::string metric;  // canonical name
  bool maximise = true;
  std::vector<int> zero_stages;  // allowed stages, ascending
  Json base_config;              // the user's configuration; axes replaced by their first value
  Json space;                    // dsat::config::Space, as JSON
  Limits limits;
  std::optional<uint64_t> device_memory_bytes;
  Json profile;       // the profiler's result (docs/profile.md); null in the profiler's own study
  Json observations;  // array of the trials that ended before this strategy started:
                      // {trial, config, outcome, metrics | null, peak_bytes | null,
                      // peak_above_bytes | null, allocator_retries}

  static Study from(const dsat_study& raw) {
    Study study = parse(detail::view(raw.study_json));
    study.seed = raw.seed;
    return study;
  }

  static Study parse(std::string_view text) {
    const Json json = Json::parse(text);
    Study study;
    study.metric = json.at("metric").get<std::string>();
    study.maximise = json.at("direction").get<std::string>() == "maximize";
    study.zero_stages = json.at("zero_stages").get<std::vector<int>>();
    study.base_config = json.at("base_config");
    study.space = json.at("space");
    const Json& limits = json.at("limits");
    study.limits.max_trials = limits.at("max_trials").get<int64_t>();
    study.limits.max_concurrent_trials = limits.at("max_concurrent_trials").get<int64_t>();
    study.limits.open_trials = limits.at("open_trials").get<int64_t>();
    study.limits.slots = limits.at("slots").get<int64_t>();
    study.limits.slots_per_trial = limits.at("slots_per_trial").get<int64_t>();
    study.limits.data_parallel_size = limits.at("data_parallel_size").get<int64_t>();
    study.limits.profile_trials = limits.at("profile_trials").get<int64_t>();
    const Json& device_memory = json.at("device_memory_bytes");
    if (!device_memory.is_null()) study.device_memory_bytes = device_memory.get<uint64_t>();
    study.profile = json.at("profile");
    study.observations = json.at("observations");
    return study;
  }

  // The inverse of parse. The seed is not part of the text.
  Json to_json() const {
    Json json{{"metric", metric},
              {"direction", maximise ? "maximize" : "minimize"},
              {"zero_stages", zero_stages},
              {"base_config", base_config},
              {"space", space},
              {"limits",
               {{"max_trials", limits.max_trials},
                {"max_concurrent_trials", limits.max_concurrent_trials},
                {"open_trials", limits.open_trials},
                {"slots", limits.slots},
                {"slots_per_trial", limits.slots_per_trial},
                {"data_parallel_size", limits.data_parallel_size},
                {"profile_trials", limits.profile_trials}}},
              {"device_memory_bytes", nullptr},
              {"profile", profile},
              {"observations", observations}};
    if (device_memory_bytes) json["device_memory_bytes"] = *device_memory_bytes;
    return json;
  }
};

}  // namespace dsat

#endif  // DSAT_STUDY_H_
