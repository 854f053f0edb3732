// What the first argument asks for: a sub-command, a search method, a command to tune, or a slip.
#include "options/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const Tokens& arguments) {
  return error_of([&] { action_of(arguments); });
}

TEST(ActionOf, IsDecidedByTheFirstArgument) {
  EXPECT_EQ(action_of({"resume", "dir"}), Action::resume);
  EXPECT_EQ(action_of({"show", "dir"}), Action::show);
  EXPECT_EQ(action_of({"report", "dir"}), Action::report);
  EXPECT_EQ(action_of({"serve", "dir"}), Action::serve);
  EXPECT_EQ(action_of({"estimate"}), Action::estimate);
  EXPECT_EQ(action_of({"space", "--", "x"}), Action::space);
  EXPECT_EQ(action_of({"plugins"}), Action::plugins);
  EXPECT_EQ(action_of({"validate", "lib.so"}), Action::validate);
  EXPECT_EQ(action_of({"new-plugin", "climb"}), Action::new_plugin);
  EXPECT_EQ(action_of({"--", "resume"}), Action::tune);
  EXPECT_EQ(action_of({"--quiet", "resume"}), Action::tune);
  EXPECT_EQ(action_of({"./train"}), Action::tune);
  EXPECT_EQ(action_of({}), Action::tune);
}

TEST(ActionOf, AMethodOrAYamlFileBeforeADirectoryBeginsTheExperimentForm) {
  for (const char* method : {"asha", "binary", "random", "_test"}) {
    EXPECT_EQ(action_of({method, "deepspeed.yaml", "."}), Action::tune_experiment);
    EXPECT_EQ(action_of({method, "--help"}), Action::tune_experiment);
  }
  EXPECT_EQ(action_of({"deepspeed.yaml", "."}), Action::tune_experiment);
  EXPECT_EQ(action_of({"deepspeed.yml", "/", "--quiet"}), Action::tune_experiment);
}

TEST(ActionOf, AMisspeltMethodIsNoProgram) {
  EXPECT_THAT(refusal({"ahsa", "deepspeed.yaml", "."}), HasSubstr("method 'ahsa'"));
  EXPECT_EQ(action_of({"sh", "deepspeed.yaml", "."}), Action::tune);  // a program there is
  EXPECT_EQ(action_of({"./ahsa", "deepspeed.yaml", "."}), Action::tune);
}

TEST(ActionOf, AMisspeltSubCommandIsNoProgram) {
  EXPECT_THAT(refusal({"shwo", "dir"}), HasSubstr("dsat-host show?"));
  EXPECT_THAT(refusal({"estimat"}), HasSubstr("dsat-host estimate?"));
  EXPECT_THAT(refusal({"status", "dir"}), HasSubstr("dsat-host show?"));
  EXPECT_EQ(action_of({"./shwo", "dir"}), Action::tune);
  EXPECT_EQ(action_of({"no-such-program", "dir"}), Action::tune);
  EXPECT_EQ(action_of({"sh", "dir"}), Action::tune);  // a program there is
}

TEST(WordsAsOptions, HelpAndVersionAreThoseOfTheOptions) {
  EXPECT_EQ(words_as_options({"help"}), Tokens{"--help"});
  EXPECT_EQ(words_as_options({"help", "all"}), (Tokens{"--help", "all"}));
  EXPECT_EQ(words_as_options({"help", "show"}), (Tokens{"show", "--help"}));
  EXPECT_EQ(words_as_options({"version"}), Tokens{"--version"});
  for (const Tokens& other : {Tokens{"--", "help"}, Tokens{"help", "train.py"}, Tokens{"version", "x"}, Tokens{}}) {
    EXPECT_EQ(words_as_options(other), other);
  }
}

TEST(ActionOf, AYamlFileWithoutADirectoryIsACommand) {
  EXPECT_EQ(action_of({"deepspeed.yaml", "no-such-folder"}), Action::tune);
  EXPECT_EQ(action_of({"deepspeed.yaml"}), Action::tune);
}

TEST(CheckCommand, WantsOne) {
  EXPECT_THAT(error_of([] { check_command(Split{}); }),
              AllOf(HasSubstr("no COMMAND"), HasSubstr("dsat-host [options] --")));
}

TEST(CheckCommand, RefusesReservedWordsUnlessSetOffByDashes) {
  for (const char* word : {"resume", "show", "estimate", "plugins", "validate", "asha", "_test"}) {
    Split parts;
    parts.rest = {word, "x"};
    EXPECT_THAT(error_of([&] { check_command(parts); }), HasSubstr("goes after --"));
    parts.after_dashes = true;
    EXPECT_EQ(error_of([&] { check_command(parts); }), "no error");
  }
}

TEST(CheckCommand, TakesAnyOtherProgram) {
  Split parts;
  parts.rest = {"python3", "train.py", "asha"};
  EXPECT_EQ(error_of([&] { check_command(parts); }), "no error");
}

}  // namespace
}  // namespace dsat::cli
