// Builders of options: each sets the kind and the name of the value. The setters change an option and return it.
#include "dsat/cli/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace dsat::cli_kit {
namespace {

Option valued(ValueKind kind, std::string name, std::string value_name, std::string help) {
  Option option;
  option.kind = kind;
  option.name = std::move(name);
  option.value_name = std::move(value_name);
  option.help = std::move(help);
  return option;
}

}  // namespace

Option Option::toggle(std::string name, std::string help) {
  return valued(ValueKind::text, std::move(name), "", std::move(help)).taking(Takes::nothing);
}

Option Option::text(std::string name, std::string value_name, std::string help) {
  return valued(ValueKind::text, std::move(name), std::move(value_name), std::move(help));
}

Option Option::path(std::string name, std::string value_name, std::string help) {
  return valued(ValueKind::path, std::move(name), std::move(value_name), std::move(help));
}

Option Option::integer(std::string name, std::string help) {
  return valued(ValueKind::integer, std::move(name), "N", std::move(help));
}

Option Option::number(std::string name, std::string help) {
  return valued(ValueKind::number, std::move(name), "N", std::move(help));
}

Option Option::size(std::string name, std::string help) {
  return valued(ValueKind::size, std::move(name), "SIZE", std::move(help));
}

Option Option::duration(std::string name, std::string help) {
  return valued(ValueKind::duration, std::move(name), "TIME", std::move(help));
}

Option Option::choice(std::string name, std::vector<std::string> words, std::string help) {
  Option option = valued(ValueKind::choice, std::move(name), fmt::format("{}", fmt::join(words, "|")), std::move(help));
  option.words = std::move(words);
  return option;
}

Option Option::also(std::string spelling) && {
  aliases.push_back(std::move(spelling));
  return std::move(*this);
}

Option Option::from(int64_t least, int64_t most) && {
  low = least;
  high = most;
  return std::move(*this);
}

Option Option::or_word(std::string word) && {
  value_name += "|" + word;
  words.push_back(std::move(word));
  return std::move(*this);
}

Option Option::absent_as(std::string value) && {
  absent_values.push_back(std::move(value));
  return std::move(*this);
}

Option Option::by_default(std::string shown) && {
  default_shown = std::move(shown);
  return std::move(*this);
}

Option Option::by_default(int64_t shown) && { return std::move(*this).by_default(fmt::format("{}", shown)); }

Option Option::shown_as(std::string name_of_value) && {
  value_name = std::move(name_of_value);
  return std::move(*this);
}

Option Option::taking(Takes how) && {
  takes = how;
  return std::move(*this);
}

Option Option::when_repeated(Again what) && {
  again = what;
  return std::move(*this);
}

Option Option::hide() && {
  hidden = true;
  return std::move(*this);
}

bool Option::has_word(const std::string& text) const {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::string display(const Option& option) {
  std::string text = "--" + option.name;
  for (const std::string& alias : option.aliases) {
    if (alias.rfind("--", 0) != 0) text += fmt::format(" ({})", alias);
  }
  return text;
}

}  // namespace dsat::cli_kit
