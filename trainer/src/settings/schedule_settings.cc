// One function for each of DeepSpeed's schedulers; defaults are DeepSpeed's.
#include "settings/schedule_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/config_reader.h"

namespace dsat::trainer {
namespace {

constexpr int64_t kMostSteps = INT64_C(1) << 50;
const std::string kParams = "scheduler.params.";

double rate(const Json& config, const char* key, double absent) {
  return read_number(config, kParams + key, absent, 0, 1e6);
}
int64_t steps(const Json& config, const char* key, int64_t absent, int64_t least) {
  return read_integer(config, kParams + key, absent, least, kMostSteps);
}

void read_warmup(const Json& config, ScheduleSettings& s) {
  // Below two there is nothing to rise through; DeepSpeed makes two of it.
  s.warmup_steps = std::max<int64_t>(2, steps(config, "warmup_num_steps", s.warmup_steps, 0));
  const std::string rise = read_string(config, kParams + "warmup_type", "log");
  if (rise != "log" && rise != "linear") {
    throw Error(fmt::format("{}warmup_type is \"{}\"; expected \"log\" or \"linear\"", kParams, rise));
  }
  s.logarithmic = rise == "log";
}

void read_total(const Json& config, const std::string& type, ScheduleSettings& s) {
  s.total_steps = steps(config, "total_num_steps", 0, 1);
  if (s.total_steps > 0) return;
  throw Error(fmt::format("{}total_num_steps is missing; {} needs the length of training", kParams, type));
}

// Without the key WarmupLR rises to the optimizer's own rate, as in DeepSpeed from 0.17.2 on, but WarmupDecayLR does
// not. "auto" and null stand for that rate in both.
void read_warmup_rates(const Json& config, double constant, ScheduleSettings& s) {
  s.min_lr = rate(config, "warmup_min_lr", s.min_lr);
  const Json* params = given(config, "scheduler.params");
  const bool says_max = params != nullptr && params->contains("warmup_max_lr");
  const bool is_own_rate = says_max || s.kind == ScheduleSettings::Kind::warmup;
  s.max_lr = rate(config, "warmup_max_lr", is_own_rate ? constant : s.max_lr);
}

double required_rate(const Json& config, const char* key) {
  if (given(config, kParams + key) == nullptr)
    throw Error(fmt::format("{}{} is missing; OneCycle needs it", kParams, key));
  return rate(config, key, 0);
}

void read_cycle(const Json& config, bool has_betas, ScheduleSettings& s) {
  s.min_lr = required_rate(config, "cycle_min_lr");
  s.max_lr = required_rate(config, "cycle_max_lr");
  Cycle& c = s.cycle;
  const auto size = [&](const char* key, double absent, double least) {
    return read_number(config, kParams + key, absent, least, 1e15);
  };
  c.first_size = size("cycle_first_step_size", c.first_size, 1);
  c.second_size = size("cycle_second_step_size", c.first_size, 0);
  c.first_stairs = steps(config, "cycle_first_stair_count", 0, 0);
  c.second_stairs = steps(config, "cycle_second_stair_count", c.first_stairs, 0);
  c.decay_size = size("decay_step_size", 0, 0);
  c.decay_lr_rate = rate(config, "decay_lr_rate", 0);
  c.moves_momentum = read_bool(config, kParams + "cycle_momentum", true) && has_betas;
  c.min_momentum = read_number(config, kParams + "cycle_min_mom", c.min_momentum, 0, 1);
  c.max_momentum = read_number(config, kParams + "cycle_max_mom", c.max_momentum, 0, 1);
  c.decay_momentum_rate = rate(config, "decay_mom_rate", 0);
}

void read_range_test(const Json& config, ScheduleSettings& s) {
  s.min_lr = rate(config, "lr_range_test_min_lr", 1e-3);
  s.step_size = steps(config, "lr_range_test_step_size", s.step_size, 1);
  s.step_rate = rate(config, "lr_range_test_step_rate", s.step_rate);
  s.is_staircase = read_bool(config, kParams + "lr_range_test_staircase", false);
}

const std::map<std::string, std::vector<const char*>>& keys_by_type() {
  static const std::map<std::string, std::vector<const char*>> keys = {
      {"WarmupLR", {"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"}},
      {"WarmupDecayLR", {"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type", "total_num_steps"}},
      {"WarmupCosineLR", {"warmup_min_ratio", "warmup_num_steps", "cos_min_ratio", "warmup_type", "total_num_steps"}},
      {"OneCycle",
       {"cycle_min_lr", "cycle_max_lr", "decay_lr_rate", "cycle_first_step_size", "cycle_second_step_size",
        "cycle_first_stair_count", "cycle_second_stair_count", "decay_step_size", "cycle_momentum", "cycle_min_mom",
        "cycle_max_mom", "decay_mom_rate"}},
      {"LRRangeTest",
       {"lr_range_test_min_lr", "lr_range_test_step_size", "lr_range_test_step_rate", "lr_range_test_staircase"}}};
  return keys;
}

}  // namespace

ScheduleSettings read_schedule(const Json& config, double constant, bool has_betas) {
  ScheduleSettings s;
  const std::string type = read_string(config, "scheduler.type", "");
  if (type.empty()) return s;
  if (type == "WarmupLR" || type == "WarmupDecayLR") {
    s.kind = type == "WarmupLR" ? ScheduleSettings::Kind::warmup : ScheduleSettings::Kind::warmup_decay;
    read_warmup_rates(config, constant, s);
    read_warmup(config, s);
    if (s.kind == ScheduleSettings::Kind::warmup_decay) read_total(config, type, s);
  } else if (type == "WarmupCosineLR") {
    s.kind = ScheduleSettings::Kind::warmup_cosine;
    read_warmup(config, s);
    read_total(config, type, s);
    s.min_ratio = read_number(config, kParams + "warmup_min_ratio", s.min_ratio, 0, 1);
    s.end_ratio = read_number(config, kParams + "cos_min_ratio", s.end_ratio, 0, 1);
  } else if (type == "OneCycle") {
    s.kind = ScheduleSettings::Kind::one_cycle;
    read_cycle(config, has_betas, s);
  } else if (type == "LRRangeTest") {
    s.kind = ScheduleSettings::Kind::range_test;
    read_range_test(config, s);
  } else {
    std::vector<std::string> known;
    for (const auto& [name, keys] : keys_by_type()) known.push_back(name);
    throw Error(fmt::format("scheduler.type is \"{}\"; dsat-trial has {}, and set_lr_schedule() for others", type,
                            fmt::join(known, ", ")));
  }
  return s;
}

const std::vector<const char*>& schedule_keys(const Json& config) {
  return keys_by_type().at(read_string(config, "scheduler.type", ""));
}

}  // namespace dsat::trainer
