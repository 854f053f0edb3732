// The JSON form of a space, which a study gives to its searcher, and the overrides of a point. build_space.cc makes
// spaces.
#include "dsat/config/space.h"

#include <fmt/format.h>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::config {
namespace {

Json optional_to_json(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<int64_t> optional_from_json(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (value.is_null()) return std::nullopt;
  return value.get<int64_t>();
}

StageSpace stage_from_json(const Json& json) {
  StageSpace stage;
  stage.stage = json.at("stage").get<int>();
  for (const Json& member : json.at("axes")) {
    Axis axis;
    axis.key = member.at("key").get<std::string>();
    for (const Json& value : member.at("values")) axis.values.push_back(value);
    if (axis.values.empty()) throw Error("the space: " + axis.key + " has no values");
    stage.axes.push_back(std::move(axis));
  }
  return stage;
}

}  // namespace

const StageSpace* Space::stage(int stage) const {
  for (const StageSpace& candidate : stages) {
    if (candidate.stage == stage) return &candidate;
  }
  return nullptr;
}

bool Space::allows_micro_batch(int64_t micro_batch) const {
  if (micro_batch < 1 || micro_batch < min_micro_batch) return false;
  if (max_micro_batch && micro_batch > *max_micro_batch) return false;
  return !micro_batch_divides || *micro_batch_divides % micro_batch == 0;
}

Json to_json(const Space& space) {
  Json stages = Json::array();
  for (const StageSpace& stage : space.stages) {
    Json axes = Json::array();
    for (const Axis& axis : stage.axes) axes.push_back(Json{{"key", axis.key}, {"values", Json(axis.values)}});
    stages.push_back(Json{{"stage", stage.stage}, {"axes", std::move(axes)}});
  }
  Json json{{"min_micro_batch", space.min_micro_batch},
            {"max_micro_batch", optional_to_json(space.max_micro_batch)},
            {"micro_batch_divides", optional_to_json(space.micro_batch_divides)},
            {"stages", std::move(stages)}};
  for (const Condition& condition : space.conditions) json["conditions"].push_back(to_json(condition));
  return json;
}

Space space_from_json(const Json& json) {
  try {
    Space space;
    space.min_micro_batch = json.at("min_micro_batch").get<int64_t>();
    space.max_micro_batch = optional_from_json(json, "max_micro_batch");
    space.micro_batch_divides = optional_from_json(json, "micro_batch_divides");
    for (const Json& stage : json.at("stages")) space.stages.push_back(stage_from_json(stage));
    for (const Json& one : json.value("conditions", Json::array()))
      space.conditions.push_back(condition_from_json(one));
    return space;
  } catch (const Json::exception& error) {
    throw Error(std::string("the space is not what to_json() writes: ") + error.what());
  }
}

Json overrides(const StageSpace& stage, const std::vector<size_t>& choice, int64_t micro_batch) {
  if (choice.size() != stage.axes.size()) {
    throw Error(fmt::format("a choice of {} values for the {} axes of stage {}", choice.size(), stage.axes.size(),
                            stage.stage));
  }
  Json out = Json::object();
  set(out, kStageKey, stage.stage);
  for (size_t i = 0; i < choice.size(); ++i) {
    const Axis& axis = stage.axes[i];
    if (choice[i] >= axis.values.size()) {
      throw Error(fmt::format("choice {} of {}, which has {} values", choice[i], axis.key, axis.values.size()));
    }
    set(out, axis.key, axis.values[choice[i]]);
  }
  set(out, kMicroBatchKey, micro_batch);
  return out;
}

}  // namespace dsat::config
