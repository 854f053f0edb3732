// Finds options with a linear search, since a set has some dozens. Suggestions come from edit distances.
#include "dsat/cli/option_set.h"

#include <algorithm>

#include "dsat/base/spelling.h"

namespace dsat::cli_kit {
namespace {

// A long spelling with hyphens for underscores; other spellings as they are.
std::string hyphenated(std::string_view spelling) {
  std::string text(spelling);
  if (text.rfind("--", 0) == 0) std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

}  // namespace

void OptionSet::add_group(const std::string& heading, std::vector<Option> options) {
  for (Option& option : options) {
    option.group = heading;
    add(std::move(option));
  }
}

void OptionSet::remove(std::string_view name) {
  const auto bears = [&](const Option& option) { return option.name == name; };
  options_.erase(std::remove_if(options_.begin(), options_.end(), bears), options_.end());
}

const Option* OptionSet::find(std::string_view spelling) const {
  const Option* const exact = find_exactly(spelling);
  return exact != nullptr ? exact : find_exactly(hyphenated(spelling));
}

const Option* OptionSet::find_exactly(std::string_view spelling) const {
  const auto is_spelt_so = [&](const Option& option) {
    return spelling == "--" + option.name ||
           std::find(option.aliases.begin(), option.aliases.end(), spelling) != option.aliases.end();
  };
  const auto it = std::find_if(options_.begin(), options_.end(), is_spelt_so);
  return it == options_.end() ? nullptr : &*it;
}

std::string OptionSet::nearest(std::string_view spelling) const {
  const std::string wanted = hyphenated(spelling);
  std::vector<std::string> names;
  for (const Option& option : options_) {
    names.push_back("--" + option.name);
    // A missing dash and an abbreviation are common slips.
    const bool abbreviated = wanted.size() > 4 && names.back().rfind(wanted, 0) == 0;
    if (abbreviated || "-" + wanted == names.back()) return names.back();
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (const std::string_view slip = nearest_name(wanted, known, 1); !slip.empty()) return std::string(slip);
  // Another program may use another first word: --run-dir or --dir is --output-dir.
  const std::string last_word = wanted.substr(std::min(wanted.rfind('-'), wanted.size()));
  const auto ends_with_it = [&last_word](const std::string& name) {
    return name.size() > last_word.size() && name.substr(name.size() - last_word.size()) == last_word;
  };
  const auto meant = std::find_if(names.begin(), names.end(), ends_with_it);
  if (last_word.size() > 3 && meant != names.end()) return *meant;
  return std::string(nearest_name(wanted, known, slip_tolerance(wanted)));
}

const OptionSet::Clash* OptionSet::clash(std::string_view spelling) const {
  const std::string wanted = hyphenated(spelling);
  const auto it =
      std::find_if(clashes_.begin(), clashes_.end(), [&](const Clash& c) { return "--" + c.name == wanted; });
  return it == clashes_.end() ? nullptr : &*it;
}

}  // namespace dsat::cli_kit
