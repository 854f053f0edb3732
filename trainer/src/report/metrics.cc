// Checks that metrics are JSON, and averages numbers over batches and ranks.
// Sums and counts travel between ranks, not means, so that every batch weighs the same.
#include "dsat/trainer/metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace dsat::trainer {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& key, const std::string& what) {
  throw Error(fmt::format("metric '{}' of {} {}", key, where, what));
}

void check(const Json& value, const std::string& where, const std::string& key) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    const char* const name = std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    refuse(where, key, fmt::format("is {}, which JSON cannot hold: leave it out or report another number", name));
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

Json scalar_of(const at::Tensor& tensor, const std::string& where, const std::string& key) {
  if (!tensor.defined()) refuse(where, key, "is a tensor that was never set: give it a value or leave it out");
  if (tensor.numel() != 1 || tensor.is_complex()) {
    refuse(where, key,
           fmt::format("is a tensor of shape [{}]: reduce it to one number (mean(), sum()) or use a reducer",
                       fmt::join(tensor.sizes(), ", ")));
  }
  if (tensor.is_floating_point()) return tensor.item<double>();
  if (tensor.scalar_type() == at::kBool) return tensor.item<bool>();
  return tensor.item<int64_t>();
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
    result[key] = tensor != nullptr ? scalar_of(*tensor, where, key) : std::get<Json>(value.get());
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
    if (!value.is_number()) {
      add_same(key, value);
      continue;
    }
    if (same_.count(key) > 0) add_same(key, value);
    Sum& sum = sums_[key];
    sum.sum += value.get<double>();
    ++sum.count;
  }
}

Json MetricMean::partial() const {
  Json result{{"sums", Json::object()}, {"same", Json::object()}};
  for (const auto& [key, sum] : sums_) result["sums"][key] = Json::array({sum.sum, sum.count});
  for (const auto& [key, value] : same_) result["same"][key] = value;
  return result;
}

void MetricMean::add_partial(const Json& partial) {
  for (const auto& [key, pair] : partial.at("sums").items()) {
    Sum& sum = sums_[key];
    sum.sum += pair[0].get<double>();
    sum.count += pair[1].get<int64_t>();
  }
  for (const auto& [key, value] : partial.at("same").items()) add_same(key, value);
}

Json MetricMean::mean() const {
  Json result = Json::object();
  for (const auto& [key, sum] : sums_) result[key] = sum.sum / static_cast<double>(sum.count);
  for (const auto& [key, value] : same_) result[key] = value;
  return result;
}

}  // namespace dsat::trainer
