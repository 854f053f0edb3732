// Merges the names and shapes of all pipeline stages into one table, and compares it with the table of a checkpoint.
// Both are sorted by name, so one pass over both finds the first difference.
#include "zero/checkpoint_parameters.h"

#include <fmt/format.h>

#include "comm/gather_json.h"

namespace dsat::trainer {
namespace {

// {name: shape}
Json shapes_of(const Layout& layout) {
  Json shapes = Json::object();
  for (const GroupSlot& layer : layout.groups()) {
    for (const ParameterSlot& slot : layer.parameters) shapes[slot.spec.name] = slot.spec.shape;
  }
  return shapes;
}

// Names the first parameter that differs; a null pointer: one of the models has none of that name.
[[noreturn]] void refuse_model(const std::string& where, const std::string& name, const Json* there, const Json* here) {
  const auto shape = [](const Json* parameter) { return parameter ? parameter->at("shape").dump() : "missing"; };
  throw Error(fmt::format("{} is of another model: parameter {} is {} there and {} here", where, name, shape(there),
                          shape(here)));
}

}  // namespace

CheckpointParameters::CheckpointParameters(const Layout& layout, const CheckpointScope& scope) {
  const Json mine = {{"stage", scope.stage}, {"shapes", shapes_of(layout)}};
  const std::vector<Json> tables = scope.stages > 1 ? gather_json(scope.ranks, mine) : std::vector<Json>{mine};
  struct NamedShape {
    int64_t first_stage;
    Json shape;
  };
  std::map<std::string, NamedShape> all;
  // gather_json() keeps the order of ranks, so the first insertion of a name is that of the first stage that has it.
  for (const Json& table : tables) {
    for (const auto& [name, shape] : table.at("shapes").items()) all.insert({name, {table.at("stage"), shape}});
  }
  std::map<std::string, int64_t> places;
  for (const auto& [name, parameter] : all) {
    const auto place = static_cast<int64_t>(described_.size());
    places[name] = place;
    if (parameter.first_stage != scope.stage) saved_by_an_earlier_.insert(place);
    described_.push_back({{"name", name}, {"shape", parameter.shape}});
  }
  for (const GroupSlot& layer : layout.groups()) {
    for (const ParameterSlot& slot : layer.parameters) places_[slot.id] = places.at(slot.spec.name);
  }
}

std::vector<OwnedRange> CheckpointParameters::numbered(std::vector<OwnedRange> ranges) const {
  for (OwnedRange& range : ranges) range.parameter = places_.at(range.parameter);
  return ranges;
}

std::vector<OwnedRange> CheckpointParameters::to_save(const std::vector<OwnedRange>& ranges) const {
  std::vector<OwnedRange> saved;
  for (const OwnedRange& range : numbered(ranges)) {
    if (saved_by_an_earlier_.count(range.parameter) == 0) saved.push_back(range);
  }
  return saved;
}

void CheckpointParameters::check(const std::string& where, const Json& saved) const {
  size_t i = 0, k = 0;
  while (i < saved.size() || k < described_.size()) {
    const Json* there = i < saved.size() ? &saved[i] : nullptr;
    const Json* here = k < described_.size() ? &described_[k] : nullptr;
    const auto name = [](const Json* parameter) { return parameter->at("name").get<std::string>(); };
    if (!here || (there && name(there) < name(here))) refuse_model(where, name(there), there, nullptr);
    if (!there || name(here) < name(there)) refuse_model(where, name(here), nullptr, here);
    if (*there != *here) refuse_model(where, name(here), there, here);
    ++i, ++k;
  }
}

}  // namespace dsat::trainer
