#include "grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

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
  EXPECT_EQ(action_of({"estimate"}), Action::estimate);
  EXPECT_EQ(action_of({"plugins"}), Action::plugins);
  EXPECT_EQ(action_of({"--", "resume"}), Action::tune);
  EXPECT_EQ(action_of({"--quiet", "resume"}), Action::tune);
  EXPECT_EQ(action_of({"./train"}), Action::tune);
  EXPECT_EQ(action_of({}), Action::tune);
}

TEST(ActionOf, RefusesWordsOfLaterVersionsWithWhatToTypeInstead) {
  for (const char* word : {"validate", "report", "serve", "export", "new-plugin"}) {
    EXPECT_THAT(refusal({word, "x"}),
                AllOf(HasSubstr("'" + std::string(word) + "' is not in this version"), HasSubstr("goes after --")));
  }
}

TEST(ActionOf, RefusesTheExperimentForm) {
  for (const char* method : {"asha", "binary", "random"}) {
    EXPECT_THAT(refusal({method, "deepspeed.yaml", "."}),
                HasSubstr("--searcher " + std::string(method) + " -- COMMAND"));
  }
  EXPECT_THAT(refusal({"_test", "deepspeed.yaml", "."}), HasSubstr("--searcher asha -- COMMAND"));
  EXPECT_THAT(refusal({"deepspeed.yaml", "."}), HasSubstr("the experiment form"));
}

TEST(ActionOf, AYamlFileWithoutADirectoryIsACommand) {
  EXPECT_EQ(action_of({"deepspeed.yaml", "no-such-folder"}), Action::tune);
  EXPECT_EQ(action_of({"deepspeed.yaml"}), Action::tune);
}

TEST(CheckCommand, WantsOne) {
  EXPECT_THAT(error_of([] { check_command(Split{}); }), HasSubstr("no COMMAND to tune: type dsat-host [options] --"));
}

TEST(CheckCommand, RefusesReservedWordsUnlessSetOffByDashes) {
  for (const char* word : {"resume", "show", "estimate", "plugins", "validate", "asha", "_test"}) {
    Split parts;
    parts.rest = {word, "x"};
    EXPECT_THAT(error_of([&] { check_command(parts); }), HasSubstr("a program of that name goes after --"));
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
