// Runs reducers rank by rank and then over the ranks, through one gather for all of them.
// What a reducer gives is checked before it joins the metrics: a wrong one is named.
#include "dsat/trainer/metric_reducer.h"

#include <fmt/format.h>

#include <utility>

#include "dsat/trainer/metrics.h"

namespace dsat::trainer {
namespace {

class FunctionReducer : public MetricReducer {
 public:
  explicit FunctionReducer(ReduceFunction function) : function_(std::move(function)) {}

  void reset() override { values_.clear(); }
  void update(const Json& value) override { values_.push_back(value); }
  Json per_slot_reduce() override { return Json(values_); }
  Json cross_slot_reduce(const std::vector<Json>& per_slot) override {
    std::vector<Json> flat;
    for (const Json& values : per_slot) flat.insert(flat.end(), values.begin(), values.end());
    return function_(flat);
  }

 private:
  ReduceFunction function_;
  std::vector<Json> values_;
};

}  // namespace

std::shared_ptr<MetricReducer> make_reducer(ReduceFunction function) {
  if (!function) throw Error("wrap_reducer: the function is empty; give one that can be called");
  return std::make_shared<FunctionReducer>(std::move(function));
}

void Reducers::add(std::shared_ptr<MetricReducer> reducer, std::optional<std::string> name, bool for_training,
                   bool for_validation) {
  const std::string who = name ? fmt::format("wrap_reducer '{}'", *name) : "wrap_reducer";
  if (!reducer) throw Error(fmt::format("{}: the reducer is null", who));
  if (!for_training && !for_validation) {
    throw Error(fmt::format("{}: for neither training nor validation; choose one or both", who));
  }
  for (const Wrapped& other : all_) {
    if (name && other.name == name) {
      throw Error(fmt::format("{}: another reducer has this name; choose a different one", who));
    }
  }
  all_.push_back({std::move(reducer), std::move(name), for_training, for_validation});
}

void Reducers::reset(Phase phase) {
  for (const Wrapped& wrapped : all_) {
    if (wrapped.takes_part(phase)) wrapped.reducer->reset();
  }
}

Json Reducers::reduce(Phase phase, const Gather& gather) {
  Json result = Json::object();
  Json mine = Json::array();
  std::vector<const Wrapped*> taking_part;
  for (const Wrapped& wrapped : all_) {
    if (!wrapped.takes_part(phase)) continue;
    taking_part.push_back(&wrapped);
    mine.push_back(wrapped.reducer->per_slot_reduce());
    check_serialisable(Json{{wrapped.name.value_or("(unnamed)"), mine.back()}}, "per_slot_reduce");
  }
  if (taking_part.empty()) return result;
  const std::vector<Json> of_ranks = gather(mine);
  for (size_t i = 0; i < taking_part.size(); ++i) {
    std::vector<Json> per_slot;
    for (const Json& of_rank : of_ranks) per_slot.push_back(of_rank.at(i));
    const Json value = taking_part[i]->reducer->cross_slot_reduce(per_slot);
    if (!taking_part[i]->name && !value.is_object()) {
      throw Error(fmt::format("a reducer without a name gave {}: give an object of metrics, or wrap it with a name",
                              value.dump()));
    }
    const Json named = taking_part[i]->name ? Json{{*taking_part[i]->name, value}} : value;
    check_serialisable(named, "a reducer");
    add_metrics(result, named);
  }
  return result;
}

void add_metrics(Json& metrics, const Json& more) {
  for (const auto& [key, value] : more.items()) {
    if (metrics.contains(key)) throw Error(fmt::format("metric '{}' is reported twice: rename it or the reducer", key));
    metrics[key] = value;
  }
}

}  // namespace dsat::trainer
