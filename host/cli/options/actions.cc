// Looks up the first argument in tables of words: sub-commands, search methods. A word that looks like
// a misspelt one is refused instead of run as a program.
#include "options/actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <vector>

#include "dsat/base/spelling.h"
#include "dsat/error.h"
#include "dsat/host/environment.h"

namespace dsat::cli {
namespace {

struct SubCommand {
  const char* word;
  Action action;
};
constexpr SubCommand kSubCommands[] = {{"resume", Action::resume},
                                       {"show", Action::show},
                                       {"best", Action::best},
                                       {"check", Action::check},
                                       {"report", Action::report},
                                       {"serve", Action::serve},
                                       {"export", Action::export_study},
                                       {"estimate", Action::estimate},
                                       {"space", Action::space},
                                       {"plugins", Action::plugins},
                                       {"validate", Action::validate},
                                       {"new-plugin", Action::new_plugin},
                                       {"completion", Action::completion},
                                       {"man", Action::man}};

// Names that other tools use for `show`.
constexpr const char* kWordsForShow[] = {"status", "list"};

constexpr const char* kSearchMethods[] = {"asha", "binary", "random", "_test"};

const SubCommand* find_sub_command(const std::string& word) {
  const auto* it = std::find_if(std::begin(kSubCommands), std::end(kSubCommands),
                                [&](const SubCommand& s) { return s.word == word; });
  return it == std::end(kSubCommands) ? nullptr : it;
}

bool is_yaml(const std::string& word) {
  const std::string extension = std::filesystem::path(word).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

// Otherwise `shwo DIR` would be run as a program.
void refuse_misspelt_sub_command(const std::string& word) {
  if (word.empty() || word[0] == '-' || word.find('/') != std::string::npos) return;
  if (host::find_program(word, "/", host::current_environment()).ok()) return;
  std::vector<std::string_view> known;
  for (const SubCommand& sub_command : kSubCommands) known.emplace_back(sub_command.word);
  std::string_view meant = nearest_name(word, known, slip_tolerance(word));
  for (const char* other : kWordsForShow) {
    if (word == other) meant = "show";
  }
  if (meant.empty()) return;
  throw Error(fmt::format("'{}' is no sub-command and no program in PATH: did you mean dsat-host {}?", word, meant));
}

// EXPERIMENT.yaml MODEL_DIR
bool is_experiment(const Tokens& tokens, size_t at) {
  std::error_code ignored;
  return tokens.size() > at + 1 && is_yaml(tokens[at]) && std::filesystem::is_directory(tokens[at + 1], ignored);
}

// Otherwise `ahsa deepspeed.yaml .` would be run as a program.
void refuse_unknown_method(const Tokens& tokens) {
  const std::string& word = tokens.front();
  if (!is_experiment(tokens, 1) || word.empty() || word[0] == '-' || word.find('/') != std::string::npos) return;
  if (host::find_program(word, "/", host::current_environment()).ok()) return;
  throw Error(fmt::format(
      "unknown search method '{}': type asha, binary, random or _test, or --searcher NAME after MODEL_DIR", word));
}

}  // namespace

std::vector<std::string> sub_command_words() {
  std::vector<std::string> words;
  for (const SubCommand& sub_command : kSubCommands) words.emplace_back(sub_command.word);
  return words;
}

bool is_search_method(const std::string& word) {
  return std::find(std::begin(kSearchMethods), std::end(kSearchMethods), word) != std::end(kSearchMethods);
}

Tokens words_as_options(Tokens arguments) {
  if (arguments.size() == 1 && arguments[0] == "version") return {"--version"};
  if (arguments.empty() || arguments.size() > 2 || arguments[0] != "help") return arguments;
  if (arguments.size() == 1) return {"--help"};
  if (arguments[1] == "all") return {"--help", "all"};
  return find_sub_command(arguments[1]) != nullptr ? Tokens{arguments[1], "--help"} : arguments;
}

Action action_of(const Tokens& arguments) {
  if (arguments.empty()) return Action::tune;
  if (const SubCommand* sub_command = find_sub_command(arguments.front())) return sub_command->action;
  if (is_search_method(arguments.front()) || is_experiment(arguments, 0)) return Action::tune_experiment;
  refuse_unknown_method(arguments);
  refuse_misspelt_sub_command(arguments.front());
  return Action::tune;
}

void check_command(const Split& split) {
  if (split.rest.empty()) {
    throw Error("no COMMAND to tune: type dsat-host [options] -- COMMAND..., see dsat-host --help");
  }
  if (split.after_dashes) return;
  const std::string& word = split.rest.front();
  if (find_sub_command(word) != nullptr) {
    throw Error(fmt::format(
        "'{0}' is a sub-command and comes first: type dsat-host {0} ...; a program of that name goes after --", word));
  }
  if (is_search_method(word) || is_experiment(split.rest, 0)) {
    throw Error(
        fmt::format("'{0}' begins the experiment form and comes first: type dsat-host {0} ... with the options "
                    "after it; a program of that name goes after --",
                    word));
  }
}

}  // namespace dsat::cli
