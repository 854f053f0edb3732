// A plugin's options: how it declares them and how it reads their values.
#ifndef DSAT_OPTION_H_
#define DSAT_OPTION_H_

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
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

namespace detail {

// Can T hold this number without a loss? The JSON library truncates silently.
template <class T>
bool is_held_by(const Json& number) {
  using Limits = std::numeric_limits<T>;
  if (number.is_number_float()) {
    const double value = number.get<double>(), end = std::ldexp(1.0, Limits::digits);
    return value == std::trunc(value) && value < end && value >= (std::is_signed_v<T> ? -end : 0.0);
  }
  if (number.is_number_unsigned() || number.get<int64_t>() >= 0) {
    return number.get<uint64_t>() <= static_cast<uint64_t>(Limits::max());
  }
  return std::is_signed_v<T> && number.get<int64_t>() >= static_cast<int64_t>(Limits::min());
}

// The type that get<T> wants, in words for a message.
template <class T>
std::string wanted_by_get() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_integral_v<T>) {
    return "a whole number from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max());
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a number";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "a text";
  } else {
    return "a value of another type";
  }
}

}  // namespace detail

// The values of all declared options. The host has checked types and ranges.
class Options {
 public:
  explicit Options(Json values) : values_(std::move(values)) {}
  // Throws for an option that was not declared, and for a value that T cannot hold.
  template <class T>
  T get(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) throw Error(DSAT_NOT_FOUND, "option '" + name + "' was not declared");
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (it->is_number() && !detail::is_held_by<T>(*it)) throw mismatch<T>(name, *it);
    }
    try {
      return it->get<T>();
    } catch (const Json::exception&) {
      throw mismatch<T>(name, *it);
    }
  }
  const Json& json() const { return values_; }

 private:
  template <class T>
  static Error mismatch(const std::string& name, const Json& value) {
    return Error("option '" + name + "' holds " + value.dump(-1, ' ', false, Json::error_handler_t::replace) +
                 ", and get() wants " + detail::wanted_by_get<T>() +
                 "; read it with the type that it is declared with");
  }

  Json values_;
};

}  // namespace dsat

#endif  // DSAT_OPTION_H_
