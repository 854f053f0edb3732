#include "grammar.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "dsat/error.h"

namespace dsat::cli {
namespace {

struct SubCommand {
  const char* word;
  Action action;
};
constexpr SubCommand kSubCommands[] = {
    {"resume", Action::resume}, {"show", Action::show}, {"estimate", Action::estimate}, {"plugins", Action::plugins}};

// Words kept for sub-commands to come, and what does the work today.
struct Reserved {
  const char* word;
  const char* instead;
};
constexpr Reserved kReserved[] = {
    {"validate", "type dsat-host plugins for what is wrong with a plugin"},
    {"report", "type dsat-host show DIR"},
    {"serve", "type dsat-host show DIR"},
    {"export", "type dsat-host show DIR --json; the best configuration is DIR/best_ds_config.json"},
    {"new-plugin", "begin with one of the plugins in examples/"},
};

constexpr const char* kSearchMethods[] = {"asha", "binary", "random", "_test"};

const SubCommand* find_sub_command(const std::string& word) {
  const auto* it = std::find_if(std::begin(kSubCommands), std::end(kSubCommands),
                                [&](const SubCommand& s) { return s.word == word; });
  return it == std::end(kSubCommands) ? nullptr : it;
}

void refuse_reserved(const Tokens& tokens) {
  const std::string& word = tokens.front();
  for (const Reserved& reserved : kReserved) {
    if (reserved.word == word) {
      throw Error("'" + word + "' is not in this version: " + reserved.instead +
                  "; a program of that name goes after --");
    }
  }
  const bool method = std::find(std::begin(kSearchMethods), std::end(kSearchMethods), word) != std::end(kSearchMethods);
  std::error_code ignored;
  const bool experiment = std::filesystem::path(word).extension() == ".yaml" && tokens.size() > 1 &&
                          std::filesystem::is_directory(tokens[1], ignored);
  if (method || experiment) {
    const std::string searcher = method && word != "_test" ? word : "asha";
    throw Error("the experiment form ('" + word + " ...') is not in this version: type dsat-host --searcher " +
                searcher + " -- COMMAND; a program of that name goes after --");
  }
}

}  // namespace

Action action_of(const Tokens& arguments) {
  if (arguments.empty()) return Action::tune;
  if (const SubCommand* sub_command = find_sub_command(arguments.front())) return sub_command->action;
  refuse_reserved(arguments);
  return Action::tune;
}

void check_command(const Split& split) {
  if (split.rest.empty()) {
    throw Error("no COMMAND to tune: type dsat-host [options] -- COMMAND..., see dsat-host --help");
  }
  if (split.after_dashes) return;
  const std::string& word = split.rest.front();
  if (find_sub_command(word) != nullptr) {
    throw Error("'" + word + "' is a sub-command and comes first: type dsat-host " + word +
                " ...; a program of that name goes after --");
  }
  refuse_reserved(split.rest);
}

}  // namespace dsat::cli
