#include "options/option_values.h"

#include <algorithm>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>
#include <charconv>
#include <cmath>
#include <sstream>

#include "dsat/base/units.h"
#include "dsat/error.h"

namespace dsat::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

const po::value_semantic* semantic(const Option& option) {
  if (option.takes == Takes::nothing) return new po::untyped_value(true);
  const std::string shown = option.value_name + (option.fallback.empty() ? "" : " (=" + option.fallback + ")");
  auto* value = po::value<Texts>();
  value->value_name(shown);
  if (option.repeatable || option.takes == Takes::stages) value->composing();
  return value;
}

// Other spellings stand in the text: Boost knows no short name of more than one letter.
std::string description(const Option& option) {
  std::string spellings;
  for (const std::string& other : option.others) {
    if (other.rfind("--", 0) != 0) spellings += other + ", ";
  }
  return spellings.empty() ? option.help : spellings.substr(0, spellings.size() - 2) + ": " + option.help;
}

po::options_description describe(const std::string& caption, const OptionSet& set, unsigned columns,
                                 const std::string* group) {
  po::options_description options(caption, columns, columns / 2);
  for (const Option& option : set.options()) {
    if (group == nullptr || (option.group == *group && !option.hidden)) {
      options.add_options()(option.name.c_str(), semantic(option), description(option).c_str());
    }
  }
  return options;
}

// Boost leaves a blank where it breaks a line.
std::string without_trailing_blanks(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

}  // namespace

Values::Values(const OptionSet& set, const Tokens& options) {
  for (const Option& option : set.options()) displays_[option.name] = display(option);
  const po::options_description known = describe("", set, 100, nullptr);
  std::map<std::string, int> occurrences;
  using Style = po::command_line_style::style_t;
  const auto parsed =
      po::command_line_parser(options).options(known).style(Style::allow_long | Style::long_allow_adjacent).run();
  for (const po::option& option : parsed.options) {
    Texts& texts = texts_[option.string_key];
    const Option* declared = set.find("--" + option.string_key);
    const bool several = declared->repeatable || declared->takes == Takes::stages;
    if (++occurrences[option.string_key] > 1 && !several && declared->takes != Takes::nothing) {
      throw Error(display(*declared) + " is given twice: give it once");
    }
    texts.insert(texts.end(), option.value.begin(), option.value.end());
  }
}

std::optional<std::string> Values::text(const std::string& name) const {
  const auto it = texts_.find(name);
  if (it == texts_.end() || it->second.empty()) return std::nullopt;
  return it->second.front();
}

std::vector<std::string> Values::texts(const std::string& name) const {
  const auto it = texts_.find(name);
  return it == texts_.end() ? Texts() : it->second;
}

std::optional<int64_t> Values::integer(const std::string& name, int64_t min, int64_t max) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  int64_t value = 0;
  const char* end = given->data() + given->size();
  const auto [stop, error] = std::from_chars(given->data(), end, value);
  const std::string range = max == std::numeric_limits<int64_t>::max()
                                ? "an integer of at least " + std::to_string(min)
                                : "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  if (stop != end || error == std::errc::invalid_argument) refuse(name, *given, "is no integer: give " + range);
  if (error == std::errc::result_out_of_range || value < min || value > max) {
    refuse(name, *given, "is out of range: give " + range);
  }
  return value;
}

std::optional<int> Values::small_integer(const std::string& name, int min, int max) const {
  const std::optional<int64_t> value = integer(name, min, max);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<double> Values::number(const std::string& name, double min) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  double value = 0;
  const char* end = given->data() + given->size();
  const auto [stop, error] = std::from_chars(given->data(), end, value);
  if (stop != end || error != std::errc() || !std::isfinite(value)) refuse(name, *given, "is no number such as 7.5e9");
  if (value < min) refuse(name, *given, "is too small: give at least " + std::to_string(static_cast<int64_t>(min)));
  return value;
}

std::optional<uint64_t> Values::size(const std::string& name) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  try {
    if (const uint64_t bytes = parse_size(*given)) return bytes;
  } catch (const Error& error) {
    throw Error(displays_.at(name) + ": " + error.what());
  }
  refuse(name, *given, "is no memory at all: give a size such as 80GB or 512MiB");
}

std::optional<std::chrono::milliseconds> Values::duration(const std::string& name) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  try {
    const std::chrono::milliseconds value = parse_duration(*given);
    if (value.count() > 0) return value;
  } catch (const Error& error) {
    throw Error(displays_.at(name) + ": " + error.what());
  }
  refuse(name, *given, "is no time at all: give a duration such as 90s, 15m or 2h");
}

std::optional<std::string> Values::choice(const std::string& name, const std::vector<std::string>& choices) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  std::string all;
  for (const std::string& choice : choices) {
    if (*given == choice) return given;
    all += (all.empty() ? "" : ", ") + choice;
  }
  refuse(name, *given, "is none of " + all);
}

void Values::refuse(const std::string& name, const std::string& text, const std::string& wanted) const {
  throw Error(displays_.at(name) + ": '" + text + "' " + wanted);
}

std::string help_text(const OptionSet& set, unsigned columns) {
  std::vector<std::string> groups;
  for (const Option& option : set.options()) {
    const bool known = std::find(groups.begin(), groups.end(), option.group) != groups.end();
    if (option.refusal.empty() && !known) groups.push_back(option.group);
  }
  std::ostringstream out;
  for (const std::string& group : groups) out << describe(group, set, columns, &group) << "\n";
  return without_trailing_blanks(out.str());
}

}  // namespace dsat::cli
