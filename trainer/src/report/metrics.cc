// Checks that metrics are JSON, and averages numbers and arrays of numbers over batches and ranks.
// Sums and counts travel between ranks, not means, so that every batch weighs the same.
#include "dsat/trainer/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace dsat::trainer {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& key, const std::string& what) {
  throw Error(DSAT_INTERNAL,
              fmt::format("metric '{}' of {} {}", key, where, what));  // a failure of the training, no wrong usage
}

void check(const Json& value, const std::string& where, const std::string& key) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    const char* const name = std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    refuse(where, key,
           fmt::format("is {}, which JSON cannot hold: a loss becomes so where training diverges (a lower learning "
                       "rate, gradient_clipping or a look at that batch helps); else leave it out",
                       name));
  }
  if (value.is_binary()) refuse(where, key, "is binary, which JSON cannot hold: report numbers or text");
  if (value.is_string()) {
    try {
      static_cast<void>(value.dump());
    } catch (const Json::exception&) {
      refuse(where, key, "is a text that is not UTF-8, which JSON cannot hold: encode it");
    }
  }
  if (value.is_structured()) {
    for (const auto& [name, element] : value.items()) check(element, where, key.empty() ? name : key + "." + name);
  }
}

Json scalar_of(const at::Tensor& tensor) {
  if (tensor.is_floating_point()) return tensor.item<double>();
  if (tensor.scalar_type() == at::kBool) return tensor.item<bool>();
  return tensor.item<int64_t>();
}

Json array_of(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return scalar_of(tensor);
  Json array = Json::array();
  for (int64_t i = 0; i < tensor.size(0); ++i) array.push_back(array_of(tensor[i]));
  return array;
}

Json value_of(const at::Tensor& tensor, const std::string& where, const std::string& key) {
  if (!tensor.defined()) refuse(where, key, "is a tensor that was never set: give it a value or leave it out");
  if (tensor.is_complex()) refuse(where, key, "is a complex tensor, which JSON cannot hold: report its parts");
  if (tensor.numel() == 1) return scalar_of(tensor);
  if (tensor.numel() > kMaxMetricElements) {
    refuse(where, key,
           fmt::format("is a tensor of shape [{}], more than {} numbers: reduce it (mean(), sum()) or use a reducer",
                       fmt::join(tensor.sizes(), ", "), kMaxMetricElements));
  }
  return array_of(tensor.detach().cpu());
}

// Numbers, and arrays of them at any depth, have a mean.
bool has_mean(const Json& value) {
  if (!value.is_array()) return value.is_number();
  return !value.empty() && std::all_of(value.begin(), value.end(), has_mean);
}

// `sum` plus `value`, element by element; false: they are of different shapes.
bool add_to(Json& sum, const Json& value) {
  if (!sum.is_array() || !value.is_array()) {
    if (sum.is_array() || value.is_array()) return false;
    sum = sum.get<double>() + value.get<double>();
    return true;
  }
  if (sum.size() != value.size()) return false;
  for (size_t i = 0; i < sum.size(); ++i) {
    if (!add_to(sum[i], value[i])) return false;
  }
  return true;
}

Json divided(const Json& sum, int64_t count) {
  if (!sum.is_array()) return sum.get<double>() / static_cast<double>(count);
  Json quotients = Json::array();
  for (const Json& element : sum) quotients.push_back(divided(element, count));
  return quotients;
}

}  // namespace

void check_serialisable(const Json& metrics, const std::string& where) {
  if (!metrics.is_object()) {
    throw Error(fmt::format("the metrics of {} are {}, not named values", where, metrics.dump()));
  }
  check(metrics, where, "");
}

Json to_json(const Metrics& metrics, const std::string& where) {
  Json result = Json::object();
  for (const auto& [key, value] : metrics) {
    const auto* const tensor = std::get_if<at::Tensor>(&value.get());
    result[key] = tensor != nullptr ? value_of(*tensor, where, key) : std::get<Json>(value.get());
  }
  check_serialisable(result, where);
  return result;
}

void MetricMean::add_same(const std::string& key, const Json& value) {
  const auto [at, is_new] = same_.emplace(key, value);
  if ((!is_new && at->second != value) || sums_.count(key) > 0) {
    throw Error(
        fmt::format("metric '{}' is not a number in every batch and differs between them: it has no mean; reduce it "
                    "with wrap_reducer",
                    key));
  }
}

void MetricMean::add(const Json& metrics) {
  for (const auto& [key, value] : metrics.items()) {
    if (has_mean(value) && same_.count(key) == 0) {
      add_sum(key, value, 1);
    } else {
      add_same(key, value);
    }
  }
}

void MetricMean::add_sum(const std::string& key, const Json& sum, int64_t count) {
  const auto [at, is_new] = sums_.emplace(key, Sum{sum, count});
  if (is_new) return;
  if (!add_to(at->second.sum, sum)) {
    throw Error(
        fmt::format("metric '{}' has another shape in another batch, so it has no mean: give it one shape, or "
                    "reduce it with wrap_reducer",
                    key));
  }
  at->second.count += count;
}

Json MetricMean::partial() const {
  Json result{{"sums", Json::object()}, {"same", Json::object()}};
  for (const auto& [key, sum] : sums_) result["sums"][key] = Json::array({sum.sum, sum.count});
  for (const auto& [key, value] : same_) result["same"][key] = value;
  return result;
}

void MetricMean::add_partial(const Json& partial) {
  for (const auto& [key, pair] : partial.at("sums").items()) {
    add_sum(key, pair[0], pair[1].get<int64_t>());
  }
  for (const auto& [key, value] : partial.at("same").items()) add_same(key, value);
}

Json MetricMean::mean() const {
  Json result = Json::object();
  for (const auto& [key, sum] : sums_) result[key] = divided(sum.sum, sum.count);
  for (const auto& [key, value] : same_) result[key] = value;
  return result;
}

}  // namespace dsat::trainer
