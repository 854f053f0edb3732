// A lineage as JSON, for a searcher's saved state. Absent values are null.
#include "search/lineage.h"

namespace dsat::search {
namespace {

template <class T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
std::optional<T> maybe(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

}  // namespace

Json to_json(const Lineage& lineage) {
  Json best_after = Json::array();
  for (const std::optional<double>& best : lineage.best_after) best_after.push_back(maybe(best));
  return {{"stage", lineage.configuration.stage},
          {"choice", lineage.configuration.choice},
          {"low", lineage.low},
          {"too_big", maybe(lineage.too_big)},
          {"failed", maybe(lineage.failed)},
          {"failures", lineage.failures},
          {"top", maybe(lineage.top)},
          {"best_rank", maybe(lineage.best_rank)},
          {"best_metric", maybe(lineage.best_metric)},
          {"trials", lineage.trials},
          {"best_after", std::move(best_after)},
          {"rung", lineage.rung},
          {"ended", lineage.ended},
          {"again", lineage.again},
          {"last", lineage.last},
          {"open", lineage.open},
          {"open_rank", lineage.open_rank},
          {"open_metric", maybe(lineage.open_metric)}};
}

Lineage lineage_from_json(const Json& json) {
  Lineage lineage;
  lineage.configuration = {json.at("stage").get<int>(), json.at("choice").get<std::vector<size_t>>()};
  lineage.low = json.at("low").get<int64_t>();
  lineage.too_big = maybe<int64_t>(json.at("too_big"));
  lineage.failed = maybe<int64_t>(json.at("failed"));
  lineage.failures = json.value("failures", int64_t{lineage.failed ? 1 : 0});  // an earlier dsat did not count them
  lineage.top = maybe<int64_t>(json.at("top"));
  lineage.best_rank = maybe<int64_t>(json.at("best_rank"));
  lineage.best_metric = maybe<double>(json.at("best_metric"));
  lineage.trials = json.at("trials").get<int64_t>();
  for (const Json& best : json.at("best_after")) lineage.best_after.push_back(maybe<double>(best));
  lineage.rung = json.at("rung").get<int64_t>();
  lineage.ended = json.at("ended").get<bool>();
  lineage.again = json.at("again").get<bool>();
  lineage.last = json.at("last").get<TrialId>();
  lineage.open = json.at("open").get<TrialId>();
  lineage.open_rank = json.at("open_rank").get<int64_t>();
  lineage.open_metric = maybe<double>(json.at("open_metric"));
  return lineage;
}

}  // namespace dsat::search
