// Remembers which keys were read. An unknown key is refused, with the most similar known name.
#include "sim/scenario_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "dsat/base/spelling.h"
#include "dsat/base/units.h"

namespace dsat::host::sim {
namespace {

constexpr double kMostCounted = 1e9;

bool alike(const std::string& typed, const std::string& known) {
  return !nearest_name(typed, {known}, slip_tolerance(typed)).empty();
}

std::string shown(double value) { return Json(value).dump(); }

}  // namespace

Section::Section(const Json& parent, const std::string& key, std::string source)
    : source_(std::move(source)), prefix_(key.empty() ? "" : key + ".") {
  json_ = key.empty() ? parent : parent.value(key, Json::object());
  if (!json_.is_object()) {
    throw Error(fmt::format("{}: {} is no JSON object", source_, key.empty() ? "it" : key));
  }
}

std::string Section::path(const std::string& key) const { return prefix_ + key; }

void Section::wrong(const std::string& key, const std::string& what) const {
  throw Error(fmt::format("{}: {} {}", source_, path(key), what));
}

const Json* Section::take(const std::string& key, bool needed) {
  known_.push_back(key);
  const auto it = json_.find(key);
  if (it != json_.end()) return &*it;
  if (!needed) return nullptr;
  for (const auto& item : json_.items()) {
    const bool taken = std::find(known_.begin(), known_.end(), item.key()) != known_.end();
    if (!taken && alike(item.key(), key)) wrong(item.key(), fmt::format("is unknown: did you mean '{}'?", key));
  }
  wrong(key, "is missing");
}

double Section::number(const std::string& key, std::optional<double> fallback) {
  const Json* value = take(key, !fallback);
  if (value == nullptr) return *fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    wrong(key, fmt::format("is {}: give a number", value->dump()));
  }
  return value->get<double>();
}

double Section::above_zero(const std::string& key, std::optional<double> fallback) {
  const double value = number(key, fallback);
  if (!(value > 0)) wrong(key, fmt::format("is {}: it must be above 0", shown(value)));
  return value;
}

double Section::not_negative(const std::string& key, std::optional<double> fallback) {
  const double value = number(key, fallback);
  if (!(value >= 0)) wrong(key, fmt::format("is {}: it must not be negative", shown(value)));
  return value;
}

double Section::share(const std::string& key, double fallback) {
  const double value = not_negative(key, fallback);
  if (value >= 1) wrong(key, fmt::format("is {}: it is a share and must be below 1", shown(value)));
  return value;
}

int64_t Section::count(const std::string& key, std::optional<int64_t> fallback) {
  const double value = number(key, fallback ? std::optional<double>(static_cast<double>(*fallback)) : std::nullopt);
  if (value > kMostCounted) wrong(key, fmt::format("is {}: it may be at most 1,000,000,000", shown(value)));
  if (!(value >= 1) || value != std::floor(value)) {
    wrong(key, fmt::format("is {}: it must be a whole number from 1 on", shown(value)));
  }
  return static_cast<int64_t>(value);
}

double Section::size(const std::string& key, std::optional<double> fallback) {
  const auto it = json_.find(key);
  if (it == json_.end() || !it->is_string()) return above_zero(key, fallback);
  take(key, true);
  double bytes = 0;
  try {
    bytes = static_cast<double>(parse_size(it->get<std::string>()));
  } catch (const Error& e) {
    wrong(key, fmt::format("is no size: {}", e.what()));
  }
  if (!(bytes > 0)) wrong(key, fmt::format("is {}: it must be above 0", it->dump()));
  return bytes;
}

bool Section::flag(const std::string& key, bool fallback) {
  const Json* value = take(key, false);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) wrong(key, fmt::format("is {}: give true or false", value->dump()));
  return value->get<bool>();
}

std::string Section::text(const std::string& key, const std::string& fallback) {
  const Json* value = take(key, false);
  if (value == nullptr) return fallback;
  if (!value->is_string()) wrong(key, fmt::format("is {}: give a string", value->dump()));
  return value->get<std::string>();
}

Json Section::object(const std::string& key) {
  const Json* value = take(key, false);
  if (value == nullptr) return Json::object();
  if (!value->is_object()) wrong(key, "is no JSON object");
  return *value;
}

Json Section::list(const std::string& key) {
  const Json* value = take(key, false);
  if (value == nullptr) return Json::array();
  if (!value->is_array()) wrong(key, "is no list");
  return *value;
}

void Section::finish() const {
  for (const auto& item : json_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    const auto near = std::find_if(known_.begin(), known_.end(), [&](const std::string& known) {
      return !json_.contains(known) && alike(item.key(), known);
    });
    if (near == known_.end()) wrong(item.key(), "is unknown: docs/simulator.md lists the keys there are");
    wrong(item.key(), fmt::format("is unknown: did you mean '{}'?", *near));
  }
}

}  // namespace dsat::host::sim
