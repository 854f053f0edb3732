// Finds "--flag VALUE" and "--flag=VALUE". A token that is a flag's value is not read as a flag.
#include "command/command_args.h"

#include <algorithm>
#include <array>
#include <optional>

#include "dsat/base/affix.h"

namespace dsat::host {

namespace {

// Returns the use of `name` at token i, if there is one.
std::optional<FlagUse> use_at(const Argv& argv, size_t i, std::string_view name) {
  if (argv[i] == name) return FlagUse{i, i + 1, 0};
  if (argv[i].size() > name.size() && argv[i][name.size()] == '=' && starts_with(argv[i], name)) {
    return FlagUse{i, i, name.size() + 1};
  }
  return std::nullopt;
}

template <class Names>
std::vector<FlagUse> find_all(const Argv& argv, const Names& names) {
  std::vector<FlagUse> uses;
  for (size_t i = 0; i < argv.size(); ++i) {
    for (const std::string_view name : names) {
      const auto use = use_at(argv, i, name);
      if (!use) continue;
      uses.push_back(*use);
      // A value is no flag, whatever it looks like. But a token that begins with two dashes is no value: the flag
      // before it is a switch.
      if (use->value < argv.size() && !starts_with(argv[use->value], "--")) i = std::max(i, use->value);
      break;
    }
  }
  return uses;
}

}  // namespace

std::vector<FlagUse> find_flag(const Argv& argv, std::initializer_list<std::string_view> names) {
  return find_all(argv, names);
}

std::string with_underscores(std::string flag) {
  const size_t begin = std::min(flag.find_first_not_of('-'), flag.size());
  std::replace(flag.begin() + static_cast<std::ptrdiff_t>(begin), flag.end(), '-', '_');
  return flag;
}

std::vector<FlagUse> find_flag_in_any_spelling(const Argv& argv, const std::string& name) {
  std::string dashes = name;
  std::replace(dashes.begin(), dashes.end(), '_', '-');
  return find_all(argv, std::array<std::string_view, 3>{name, with_underscores(name), dashes});
}

std::vector<FlagUse> find_flag(const Argv& argv, const std::string& name) {
  return find_all(argv, std::array<std::string_view, 1>{name});
}

bool is_word_name(const std::string& flag) { return flag.size() > 1 && flag[0] != '-' && flag.back() == '='; }

std::vector<FlagUse> find_mapped(const Argv& argv, const std::string& flag) {
  if (!is_word_name(flag)) return find_flag_in_any_spelling(argv, flag);
  std::vector<FlagUse> uses;
  for (size_t i = 0; i < argv.size(); ++i) {
    const size_t begin = std::min({argv[i].find_first_not_of('+'), argv[i].size(), size_t{2}});
    if (argv[i].compare(begin, flag.size(), flag) == 0) uses.push_back({i, i, begin + flag.size()});
  }
  return uses;
}

bool is_yaml_name(const std::string& word) {
  const auto ends_in = [&](std::string_view ending) {
    return word.size() > ending.size() && word.compare(word.size() - ending.size(), ending.size(), ending) == 0;
  };
  return ends_in(".yaml") || ends_in(".yml");
}

}  // namespace dsat::host
