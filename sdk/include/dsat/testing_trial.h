// A trial on the test bench (dsat/testing.h): the request and the end.
//
// Threading: plain values and pure functions. Errors: a malformed observation throws an exception of the JSON library.
#ifndef DSAT_TESTING_TRIAL_H_
#define DSAT_TESTING_TRIAL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "dsat/searcher.h"
#include "dsat/testing_rules.h"

namespace dsat::testing {

// A requested trial.
struct Trial {
  TrialId id = kNoTrial;
  TrialId parent = kNoTrial;
  Json overrides;
  Json config;  // the study's base configuration with the overrides merged over it
  std::string note;
  bool repeat = false;
  bool duplicate = false;  // the result of an earlier trial answers it, so it costs nothing
  TrialId duplicate_of = kNoTrial;
  std::string identity;  // equal for all trials of the same configuration
  // 0: the configuration has no such number.
  int64_t micro_batch() const {
    return rules::whole_number<int64_t>(config, "/train_micro_batch_size_per_gpu"_json_pointer);
  }
  int stage() const { return rules::whole_number<int>(config, "/zero_optimization/stage"_json_pointer); }
};

// The end of a trial.
struct Answer {
  Outcome outcome = Outcome::completed;
  std::map<std::string, double> metrics;  // of a completed trial
  std::optional<uint64_t> peak_bytes;
  std::string reason;
  std::optional<uint64_t> peak_above_bytes{};  // of a trial out of memory: see Exit
  uint64_t allocator_retries = 0;
  static Answer completed(std::map<std::string, double> metrics, std::optional<uint64_t> peak_bytes = std::nullopt) {
    return {Outcome::completed, std::move(metrics), peak_bytes, ""};
  }
  static Answer out_of_memory(std::optional<uint64_t> peak_above_bytes = std::nullopt) {
    return {Outcome::out_of_memory, {}, std::nullopt, "out of memory", peak_above_bytes};
  }
  static Answer failed(std::string reason) { return {Outcome::failed, {}, std::nullopt, std::move(reason)}; }
};
using AnswerFunction = std::function<Answer(const Trial&)>;

struct Ended {
  Trial trial;
  Answer answer;
};

// The end of an observed trial.
inline Answer answer_of(const Json& observation) {
  const auto bytes = [&](const char* name) {
    const Json value = observation.value(name, Json());
    return value.is_number() ? std::optional<uint64_t>(value.get<uint64_t>()) : std::nullopt;
  };
  Answer answer;
  answer.outcome = outcome_named(observation.value("outcome", "")).value_or(Outcome::failed);
  const Json metrics = observation.value("metrics", Json());
  if (metrics.is_object()) answer.metrics = metrics.get<std::map<std::string, double>>();
  answer.peak_bytes = bytes("peak_bytes");
  answer.peak_above_bytes = bytes("peak_above_bytes");
  answer.allocator_retries = bytes("allocator_retries").value_or(0);
  return answer;
}

// Copies every leaf of `source` over `base`, as the host merges overrides.
inline void merge(Json& base, const Json& source) {
  for (const auto& [key, value] : source.items()) {
    if (value.is_object() && base.contains(key) && base[key].is_object()) {
      merge(base[key], value);
    } else {
      base[key] = value;
    }
  }
}

// A trial whose result answers later trials of the same configuration; no answer while it is open.
struct Known {
  std::string identity;
  std::optional<Answer> answer;
  // A stopped or lost trial has measured nothing.
  bool holds() const { return !answer || (answer->outcome != Outcome::stopped && answer->outcome != Outcome::lost); }
};

}  // namespace dsat::testing

#endif  // DSAT_TESTING_TRIAL_H_
