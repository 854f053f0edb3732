// A plugin's options: how it declares them and how it reads their values.
#ifndef DSAT_OPTION_H_
#define DSAT_OPTION_H_

#include <string>
#include <utility>
#include <vector>

#include "dsat/error.h"

namespace dsat {

// One entry of dsat_descriptor.options_json, built fluently:
//   OptionSpec::integer("max-rungs", 5, "rungs of the ladder").min(1)
class OptionSpec {
 public:
  static OptionSpec integer(std::string name, int64_t value, std::string help) {
    return {std::move(name), "int", value, std::move(help)};
  }
  static OptionSpec number(std::string name, double value, std::string help) {
    return {std::move(name), "number", value, std::move(help)};
  }
  static OptionSpec boolean(std::string name, bool value, std::string help) {
    return {std::move(name), "bool", value, std::move(help)};
  }
  static OptionSpec string(std::string name, std::string value, std::string help) {
    return {std::move(name), "string", std::move(value), std::move(help)};
  }
  static OptionSpec choice(std::string name, std::vector<std::string> choices, std::string value, std::string help) {
    OptionSpec spec{std::move(name), "choice", std::move(value), std::move(help)};
    spec.json_["choices"] = std::move(choices);
    return spec;
  }
  template <class T>
  OptionSpec&& min(T value) && {
    json_["min"] = value;
    return std::move(*this);
  }
  template <class T>
  OptionSpec&& max(T value) && {
    json_["max"] = value;
    return std::move(*this);
  }
  const Json& json() const { return json_; }

 private:
  OptionSpec(std::string name, const char* type, Json value, std::string help)
      : json_{{"name", std::move(name)}, {"type", type}, {"default", std::move(value)}, {"help", std::move(help)}} {}
  Json json_;
};

// The values, one for every declared option; the host has checked types and ranges.
class Options {
 public:
  explicit Options(Json values) : values_(std::move(values)) {}
  template <class T>
  T get(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) throw Error(DSAT_NOT_FOUND, "option '" + name + "' was not declared");
    return it->get<T>();
  }
  const Json& json() const { return values_; }

 private:
  Json values_;
};

}  // namespace dsat

#endif  // DSAT_OPTION_H_
