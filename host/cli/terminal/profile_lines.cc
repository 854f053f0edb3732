// Reads the profile key by key: a profiler may leave out any key. A ceiling is shown as a number unless its interval is
// too wide.
#include "terminal/profile_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dsat/base/units.h"
#include "dsat/host/format.h"

namespace dsat::cli {
namespace {

using host::format_count;

// A number, or the value of an interval {value, low, high}; nullopt: null or absent.
std::optional<double> number_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  if (it->is_number()) return it->get<double>();
  return it->is_object() ? number_at(*it, "value") : std::nullopt;
}

std::string interval_text(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object()) return "";
  const auto low = number_at(*it, "low"), high = number_at(*it, "high");
  if (!low || !high) return "";
  return fmt::format(" (90 % interval {} to {})", format_size(*low), format_size(*high));
}

std::string bytes_at(const Json& object, const char* key) {
  const auto bytes = number_at(object, key);
  return bytes ? format_size(*bytes) : "unknown";
}

// If the device's memory is unknown, the ceiling is the largest micro batch that has fitted so far.
std::string ceiling_text(const Json& stage, bool memory_known) {
  const auto ceiling = number_at(stage, "max_micro_batch");
  if (!ceiling || (!memory_known && *ceiling < 1)) return "maximum micro batch unknown";
  // If two micro batches need the same memory, a line through them never reaches the device's memory, and its crossing
  // would be an invented number.
  constexpr double kTooFar = 64;
  const Json& interval = stage.at("max_micro_batch");
  const double low = interval.is_object() ? std::max(1.0, number_at(interval, "low").value_or(*ceiling)) : *ceiling;
  if (*ceiling > kTooFar * low) return fmt::format("maximum micro batch unknown, at least {:.0f}", low);
  return fmt::format(memory_known ? "approximate maximum micro batch {:.0f}" : "maximum micro batch at least {:.0f}",
                     *ceiling);
}

std::string stage_line(const Json& stage, bool memory_known) {
  return fmt::format("stage {:.0f}: model states {}, {}", number_at(stage, "stage").value_or(0),
                     bytes_at(stage, "model_state_bytes"), ceiling_text(stage, memory_known));
}

}  // namespace

std::vector<std::string> profile_lines(const Json& profile) {
  std::vector<std::string> lines;
  if (!profile.is_object()) return lines;
  const auto params = number_at(profile, "num_params"), trainable = number_at(profile, "trainable_num_params");
  if (params) {
    std::string line = fmt::format("model: {} parameters", format_count(*params));
    if (trainable && *trainable != *params) line += fmt::format(", {} of them trainable", format_count(*trainable));
    lines.push_back(line);
  }
  const bool memory_known = number_at(profile, "device_memory_bytes").has_value();
  lines.push_back(fmt::format("device memory: {}{}", bytes_at(profile, "device_memory_bytes"),
                              memory_known ? "" : "; give --device-memory SIZE or --max-micro-batch N"));
  lines.push_back(fmt::format("activation memory per example: {}{}", bytes_at(profile, "activation_bytes_per_sample"),
                              interval_text(profile, "activation_bytes_per_sample")));
  const auto stages = profile.find("stages");
  if (stages != profile.end() && stages->is_array()) {
    for (const Json& stage : *stages) lines.push_back(stage_line(stage, memory_known));
  }
  return lines;
}

}  // namespace dsat::cli
