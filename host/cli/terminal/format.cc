// Reads single keys of configurations and metrics; dsat/host and dsat/base format the values. A key that is missing or
// has another type becomes a dash.
#include "terminal/format.h"

#include <fmt/format.h>

#include "dsat/base/units.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::cli {
namespace {

std::optional<int64_t> integer_at(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

}  // namespace

std::string format_metric(const std::string& metric, const Json& metrics) {
  if (!metrics.is_object()) return "-";
  const auto it = metrics.find(metric);
  return it != metrics.end() && it->is_number() ? format_metric(metric, it->get<double>()) : "-";
}

std::optional<int64_t> zero_stage_of(const Json& config) { return integer_at(config, "zero_optimization.stage"); }

std::optional<int64_t> micro_batch_of(const Json& config) { return integer_at(config, config::kMicroBatchKey); }

std::string or_dash(const std::optional<int64_t>& value) { return value ? fmt::format("{}", *value) : "-"; }

std::string bytes_or_dash(const std::optional<uint64_t>& bytes) {
  return bytes ? format_size(static_cast<double>(*bytes)) : "-";
}

}  // namespace dsat::cli
