#include "options/option_set.h"

#include <algorithm>

#include "dsat/base/spelling.h"

namespace dsat::cli {
namespace {

// The long spelling with hyphens only; other spellings as they are.
std::string hyphenated(std::string_view spelling) {
  std::string text(spelling);
  if (text.rfind("--", 0) == 0) std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_spelt(const Option& option, const std::string& spelling) {
  return spelling == "--" + option.name ||
         std::find(option.others.begin(), option.others.end(), spelling) != option.others.end();
}

}  // namespace

const Option* OptionSet::find(std::string_view spelling) const {
  const std::string wanted = hyphenated(spelling);
  const auto it = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return is_spelt(o, wanted); });
  return it == options_.end() ? nullptr : &*it;
}

void OptionSet::remove(std::string_view name) {
  const auto bears = [&](const Option& option) { return option.name == name; };
  options_.erase(std::remove_if(options_.begin(), options_.end(), bears), options_.end());
}

std::string OptionSet::nearest(std::string_view spelling) const {
  const std::string wanted = hyphenated(spelling);
  std::string best;
  size_t best_distance = std::max<size_t>(2, wanted.size() / 4) + 1;
  for (const Option& option : options_) {
    if (!option.refusal.empty()) continue;
    // One dash too few or too many, or an abbreviation, is a likely slip of its own.
    const std::string name = "--" + option.name;
    const bool shortened = wanted.size() > 4 && name.rfind(wanted, 0) == 0;
    const size_t distance = shortened || "-" + wanted == name ? 0 : edit_distance(wanted, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

const OptionSet::Clash* OptionSet::clash(std::string_view spelling) const {
  const std::string wanted = hyphenated(spelling);
  const auto it =
      std::find_if(clashes_.begin(), clashes_.end(), [&](const Clash& c) { return "--" + c.name == wanted; });
  return it == clashes_.end() ? nullptr : &*it;
}

std::string display(const Option& option) {
  std::string text = "--" + option.name;
  for (const std::string& other : option.others) {
    if (other.rfind("--", 0) != 0) text += " (" + other + ")";
  }
  return text;
}

}  // namespace dsat::cli
