// schema and num_params are required; every other member must be right if it is there. At last the cost model reads the
// profile, as searchers do.
#include "plugin/profile_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string_view>

#include "dsat/base/utf8.h"
#include "dsat/config/json.h"
#include "dsat/cost/memory.h"

namespace dsat::host {
namespace {

// Up to this number, every whole number is a double.
constexpr double kMostBytes = 9007199254740992.0;
constexpr const char* kFromZero = "number from 0 to 2^53 (9007199254740992)";
constexpr const char* kFromOne = "number from 1 to 2^53 (9007199254740992)";

bool is_amount(const Json& value, double least) {
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  return std::isfinite(number) && number >= least && number <= kMostBytes;
}

bool is_whole(const Json& value, int64_t least, int64_t most) {
  return value.is_number_integer() && is_amount(value, static_cast<double>(least)) && value.get<int64_t>() <= most;
}

std::string shown(const Json& value) { return shortened(config::text_of(value), 60); }

// Checks {value, low, high} and their order; `may_be_open`: high may be null, which means no upper bound.
std::string interval_problem(const std::string& name, const Json& interval, bool may_be_open = false) {
  if (!interval.is_object()) return fmt::format("{}: {} is no {{value, low, high}}", name, shown(interval));
  for (const char* part : {"value", "low", "high"}) {
    const auto it = interval.find(part);
    if (it == interval.end()) return fmt::format("{}: it has no {}", name, part);
    const bool open = may_be_open && it->is_null() && std::string_view(part) == "high";
    if (!open && !is_amount(*it, 0)) return fmt::format("{}: its {} is {}, no {}", name, part, shown(*it), kFromZero);
  }
  const double value = interval["value"], low = interval["low"];
  const bool ordered = low <= value && (interval["high"].is_null() || value <= interval["high"].get<double>());
  return ordered ? "" : fmt::format("{}: {} is not in the order low, value, high", name, shown(interval));
}

std::string stages_problem(const Json& stages) {
  if (!stages.is_array()) return "stages: no array";
  for (const Json& stage : stages) {
    if (!stage.is_object() || !stage.contains("stage") || !is_whole(stage["stage"], 0, 3)) {
      return fmt::format("stages: {} has no 'stage' from 0 to 3", shown(stage));
    }
    for (const std::string name : {"model_state_bytes", "max_micro_batch"}) {
      if (!stage.contains(name)) continue;
      const std::string problem = interval_problem(fmt::format("stage {}: {}", stage["stage"].dump(), name),
                                                   stage[name], name == "max_micro_batch");
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

std::string trials_problem(const Json& trials) {
  if (!trials.is_array()) return "trials: no array";
  for (const Json& id : trials) {
    if (!is_whole(id, 0, INT64_MAX)) return fmt::format("trials: {} is no trial's id", shown(id));
  }
  return "";
}

std::string member_problem(const std::string& name, const Json& value) {
  const auto unless = [&](bool right, const char* wanted) {
    return right ? std::string() : fmt::format("{}: {} is no {}", name, shown(value), wanted);
  };
  if (name == "schema") return unless(value == 1, "schema that this version knows: 1");
  if (name == "num_params") return unless(is_amount(value, 1), kFromOne);
  if (name == "trainable_num_params") return unless(is_amount(value, 0), kFromZero);
  if (name == "device_memory_bytes") return unless(value.is_null() || is_amount(value, 1), kFromOne);
  if (name == "world_size") return unless(is_whole(value, 1, INT32_MAX), "whole number from 1 to 2147483647");
  const bool counts_small = std::any_of(cost::kSmallParameters.begin(), cost::kSmallParameters.end(),
                                        [&](const cost::SmallParameters& small) { return name == small.key; });
  if (name == "activation_mem_per_gpu" || name == "largest_layer_params" || counts_small) {
    return unless(is_amount(value, 0), kFromZero);
  }
  if (name == "deepspeed_version") return unless(value.is_string(), "text");
  if (name == "activation_bytes_per_sample" || name == "fixed_bytes") return interval_problem(name, value);
  if (name == "stages") return stages_problem(value);
  if (name == "trials") return trials_problem(value);
  return "";
}

}  // namespace

std::string profile_problem(const Json& profile) {
  for (const char* needed : {"schema", "num_params"}) {
    if (!profile.contains(needed)) return fmt::format("it has no {}", needed);
  }
  for (const auto& item : profile.items()) {
    const std::string problem = member_problem(item.key(), item.value());
    if (!problem.empty()) return problem;
  }
  try {
    cost::inputs_from_profile(profile);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace dsat::host
