// First a further run of the user's own configuration where there is only one, then one candidate after the other.
#include "finals/twin.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "finals/finals.h"

namespace dsat::host {

void Twin::start(const Json& brief) {
  brief_ = brief;
  budget_ = config::whole_number<int>(brief.at("budget"));
  const Json& own = brief.at("own");
  const Json& first = brief.at("candidates").at(0);
  const bool is_needed = !first.at("overrides").is_null() && config::whole_number<int>(own.at("runs")) < kRunsOfOwn;
  if (is_needed) {
    own_ = ask(own.at("overrides"), "your own configuration again: how far apart are two runs of it?", true);
    if (own_) --budget_;
  }
  if (!own_) ask_next();
}

void Twin::trial_ended(const Ended& ended) {
  if (own_ == ended.trial) {
    own_.reset();
    return ask_next();
  }
  if (twin_ != ended.trial) return;
  twin_.reset();
  if (ended.outcome == Outcome::diverged) {
    wrong_.insert(candidate().at("keys").get<std::string>());
    return ask_next();
  }
  if (ended.outcome == Outcome::out_of_memory && !is_smaller_) {
    is_smaller_ = true;
    if (ask_for("smaller", "at a smaller micro batch")) return;
  }
  name(candidate());
}

void Twin::ask_next() {
  const Json& candidates = brief_.at("candidates");
  is_smaller_ = false;
  while (next_ < candidates.size()) {
    const Json& one = candidates[next_++];
    if (wrong_.count(one.at("keys").get<std::string>()) != 0) continue;
    if (one.at("overrides").is_null()) return name(one);
    if (asked_ == kMostFinalists) break;
    if (ask_for("overrides", "at your own batch")) {
      ++asked_;
      return;
    }
    if (wrong_.empty()) return name(one);  // no trial is left, and nothing speaks against it
    break;
  }
  name(brief_.at("own"));
}

bool Twin::ask_for(const char* overrides, const std::string& note) {
  const Json& one = candidate();
  if (budget_ < 1 || one.at(overrides).is_null()) return false;
  const auto trial = config::whole_number<uint64_t>(one.at("trial"));
  twin_ = ask(one.at(overrides), fmt::format("twin: the keys of trial {} {}", trial, note), true);
  if (!twin_) return false;
  --budget_;
  return true;
}

void Twin::name(const Json& one) {
  finish(brief_.at("reason").get<std::string>(), config::whole_number<uint64_t>(one.at("trial")));
}

std::string keys_of(Json config) {
  for (const char* key : {config::kMicroBatchKey, config::kAccumulationKey, config::kTrainBatchKey}) config.erase(key);
  return config::identity(config);
}

Json at_own_batch(Json overrides, const Json& own) {
  if (!overrides.is_object()) overrides = Json::object();
  for (const char* key : {config::kMicroBatchKey, config::kAccumulationKey}) overrides[key] = own.at(key);
  overrides.erase(config::kTrainBatchKey);
  return overrides;
}

Json at_smaller_batch(Json overrides, const Json& own, int64_t fits) {
  const auto micro_batch = own.at(config::kMicroBatchKey).get<int64_t>();
  int64_t smaller = std::min(fits, micro_batch - 1);
  while (smaller > 0 && micro_batch % smaller != 0) --smaller;
  if (smaller < 1) return nullptr;
  Json at = at_own_batch(std::move(overrides), own);
  at[config::kMicroBatchKey] = smaller;
  at[config::kAccumulationKey] = own.at(config::kAccumulationKey).get<int64_t>() * (micro_batch / smaller);
  return at;
}

bool is_wrong_twin(const Trial& trial) {
  return trial.phase == Phase::twin && trial.record.outcome == Outcome::diverged;
}

}  // namespace dsat::host
