// The results of train_batch() and evaluate_batch(): named values that can be written as JSON.
//
// Threading: values. Errors: dsat::Error, one line that names the metric.
#ifndef DSAT_TRAINER_METRICS_H_
#define DSAT_TRAINER_METRICS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "dsat/error.h"

namespace dsat::trainer {

// A number, a text, any other JSON, or a tensor. A tensor of one element (shape [] or [1]) becomes a number, any other
// an array of numbers.
class MetricValue {
 public:
  MetricValue() = default;                                     // null, until metrics["name"] = value
  MetricValue(at::Tensor value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  template <typename T,
            std::enable_if_t<!std::is_same_v<std::decay_t<T>, MetricValue> &&
                                 !std::is_same_v<std::decay_t<T>, at::Tensor> && std::is_constructible_v<Json, T>,
                             int> = 0>
  MetricValue(T&& value) : value_(Json(std::forward<T>(value))) {}  // NOLINT(google-explicit-constructor)

  const std::variant<Json, at::Tensor>& get() const { return value_; }

 private:
  std::variant<Json, at::Tensor> value_;
};

// A tensor or a number by itself is the loss.
class Metrics : public std::map<std::string, MetricValue> {
 public:
  using map::map;
  Metrics() = default;
  Metrics(at::Tensor loss) : map{{"loss", std::move(loss)}} {}  // NOLINT(google-explicit-constructor)
  Metrics(double loss) : map{{"loss", loss}} {}                 // NOLINT(google-explicit-constructor)
};

// The metrics as an object with its keys in order. Errors name `where` ("train_batch, step 3") and the key's path:
// tensors of more than kMaxMetricElements, NaN and infinity, text that is not UTF-8, binary values.
inline constexpr int64_t kMaxMetricElements = 4096;
Json to_json(const Metrics& metrics, const std::string& where);
// The same check for metrics that are JSON already.
void check_serialisable(const Json& metrics, const std::string& where);

// The mean of metrics over batches, then over ranks. Numbers and the elements of arrays are averaged, and each batch
// counts once. All other values must be equal everywhere.
class MetricMean {
 public:
  void add(const Json& metrics);
  bool empty() const { return sums_.empty() && same_.empty(); }
  // The exact sums, to send to other ranks.
  Json partial() const;
  void add_partial(const Json& partial);
  Json mean() const;

 private:
  struct Sum {
    Json sum;  // a number, or an array of numbers
    int64_t count = 0;
  };
  void add_sum(const std::string& key, const Json& sum, int64_t count);
  void add_same(const std::string& key, const Json& value);

  std::map<std::string, Sum> sums_;
  std::map<std::string, Json> same_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_METRICS_H_
