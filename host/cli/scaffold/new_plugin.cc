// Copies the templates of a language and puts the new name wherever the example's stands as a word: ladder, ladder.c,
// ladder_test, and Ladder for classes.
#include "scaffold/new_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "dsat/error.h"
#include "scaffold/templates.h"

namespace dsat::cli {
namespace {

struct Language {
  const char* name;
  const char* example;  // its name
  const char* build_and_test;
  const char* plugin;  // {}: the name
};
constexpr Language kLanguages[] = {
    {"python", "random_search", "python3 -m unittest", "{}.py"},
    {"c", "ladder", "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure",
     "build/plugins/lib{}.so"},
    {"c++", "climb", "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure",
     "build/plugins/lib{}.so"},
    {"rust", "ladder", "cargo test && cargo build --release", "target/release/lib{}.so"},
};

// Plugins that come with dsat, targets of CMake, words of a language, classes of dsat.
constexpr std::string_view kTaken[] = {"asha",     "binary", "grid",  "guided", "random", "profiler",
                                       "searcher", "dsat",   "all",   "clean",  "help",   "install",
                                       "test",     "true",   "false", "none",   "plugin"};

void check_name(const std::string& name) {
  constexpr size_t kLongest = 64;
  const bool is_plain = !name.empty() && name.size() <= kLongest && name[0] >= 'a' && name[0] <= 'z' &&
                        std::all_of(name.begin(), name.end(), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                        });
  if (!is_plain) {
    throw Error(fmt::format(
        "'{}' cannot name a plugin: take lower-case letters, digits and _, a letter first, at most {} of them", name,
        kLongest));
  }
  if (std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) {
    throw Error(fmt::format("'{0}' has a meaning already: take another name, such as my_{0}", name));
  }
}

// my_search: MySearch
std::string class_name(const std::string& name) {
  std::string text;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') text += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return text;
}

// Where `from` does not begin a longer word, as in climbing.
std::string renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const size_t end = at + from.size();
    if (end < text.size() && std::islower(static_cast<unsigned char>(text[end])) != 0) {
      at = end;
    } else {
      text.replace(at, from.size(), to);
      at += to.size();
    }
  }
  return text;
}

std::string renamed_to(const std::string& text, const std::string& example, const std::string& name) {
  return renamed(renamed(text, example, name), class_name(example), class_name(name));
}

}  // namespace

std::vector<std::string> languages_of_plugins() {
  std::vector<std::string> names;
  for (const Language& language : kLanguages) names.emplace_back(language.name);
  return names;
}

NewPlugin new_plugin(const std::string& name, const std::string& language) {
  check_name(name);
  const Language& of = *std::find_if(std::begin(kLanguages), std::end(kLanguages),
                                     [&](const Language& known) { return known.name == language; });
  NewPlugin plugin;
  for (const Template& file : templates()) {
    if (file.language != language) continue;
    plugin.files.push_back({renamed_to(file.path, of.example, name), renamed_to(file.text, of.example, name)});
  }
  plugin.build_and_test = of.build_and_test;
  plugin.plugin = fmt::format(fmt::runtime(of.plugin), name);
  return plugin;
}

}  // namespace dsat::cli
