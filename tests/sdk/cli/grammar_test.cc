// The kit's grammars on a small set; tests/host/cli/options/grammar_test.cc has that of a command at length.
#include "dsat/cli/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/cli/help.h"
#include "support/error_of.h"

namespace dsat::cli_kit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

OptionSet training_options() {
  OptionSet set;
  set.add_group("Training", {Option::integer("ranks", "processes").from(1, 1024).by_default(1),
                             Option::path("deepspeed_config", "FILE", "the configuration").also("--deepspeed-config"),
                             Option::text("deepspeed", "FILE", "").taking(Takes::config_file).hide(),
                             Option::toggle("fp16-as-bf16", "bf16 in place of fp16")});
  return set;
}

Split shared(const Tokens& arguments) { return split(training_options(), arguments, Grammar::shared); }

TEST(SharedGrammar, LeavesTheOthersTokensInTheirOrder) {
  const Split parts = shared({"--layers", "4", "--ranks", "2", "file", "--", "--fp16-as-bf16", "-x"});
  EXPECT_THAT(parts.options, ElementsAre("--ranks=2", "--fp16-as-bf16"));
  EXPECT_THAT(parts.rest, ElementsAre("--layers", "4", "file", "--", "-x"));
}

TEST(SharedGrammar, EveryTokenMayBeAValue) {
  EXPECT_THAT(shared({"--ranks", "--fp16-as-bf16"}).options, ElementsAre("--ranks=--fp16-as-bf16"));
  EXPECT_THAT(shared({"--deepspeed_config="}).options, ElementsAre("--deepspeed_config="));
  EXPECT_THAT(error_of([] { shared({"--ranks"}); }), HasSubstr("--ranks N"));
}

TEST(SharedGrammar, SpellingsAreToTheLetter) {
  EXPECT_THAT(shared({"--deepspeed-config", "a"}).options, ElementsAre("--deepspeed_config=a"));
  EXPECT_THAT(shared({"--fp16_as_bf16"}).rest, ElementsAre("--fp16_as_bf16"));
  EXPECT_THAT(shared({"--fp16-as-bf16=yes"}).rest, ElementsAre("--fp16-as-bf16=yes"));
}

TEST(SharedGrammar, AConfigFileEndsInJson) {
  EXPECT_THAT(shared({"--deepspeed", "a.json", "b"}).options, ElementsAre("--deepspeed=a.json"));
  EXPECT_THAT(shared({"--deepspeed", "--ranks", "2"}).options, ElementsAre("--deepspeed", "--ranks=2"));
  EXPECT_THAT(shared({"--deepspeed=c"}).options, ElementsAre("--deepspeed=c"));
}

TEST(CommandGrammar, AWordOfItsOwnMayFollowASwitch) {
  OptionSet set;
  set.add_group("", {Option::choice("help", {"all"}, "").taking(Takes::word)});
  EXPECT_THAT(split(set, {"--help", "all", "train"}, Grammar::command).options, ElementsAre("--help=all"));
  EXPECT_THAT(split(set, {"--help", "train"}, Grammar::command).options, ElementsAre("--help"));
  EXPECT_THAT(split(set, {"--help=all"}, Grammar::command).options, ElementsAre("--help=all"));
}

TEST(CommandGrammar, AFlagsValueThatStandsApartIsRefused) {
  OptionSet set;
  set.add_group("Plugin", {Option::text("sparse", "[=BOOL]", "").taking(Takes::attached)});
  EXPECT_THAT(split(set, {"--sparse", "sh", "true"}, Grammar::command).options, ElementsAre("--sparse=true"));
  EXPECT_THAT(split(set, {"--sparse", "--", "true"}, Grammar::command).rest, ElementsAre("true"));
  EXPECT_THAT(error_of([&] {
                split(set, {"--sparse", "false", "sh"}, Grammar::command);
              }),
              HasSubstr("write --sparse=false"));
}

TEST(CommandGrammar, AnotherProgramsDefaultIsNotGiven) {
  OptionSet set;
  set.add_group("",
                {Option::text("include", "HOSTS", "").absent_as(""), Option::text("gpus", "N", "").absent_as("-1")});
  EXPECT_THAT(split(set, {"--include", "", "--gpus=-1", "train"}, Grammar::command).options, ::testing::IsEmpty());
  EXPECT_THAT(split(set, {"--include=", "--gpus", "-1", "train"}, Grammar::command).rest, ElementsAre("train"));
  EXPECT_THAT(split(set, {"--gpus", "2", "train"}, Grammar::command).options, ElementsAre("--gpus=2"));
}

TEST(OperandsGrammar, OptionsMayStandAnywhereUpToTwoDashes) {
  const Split parts = split(training_options(), {"run", "--ranks", "2", "other", "--", "--ranks"}, Grammar::operands);
  EXPECT_THAT(parts.options, ElementsAre("--ranks=2"));
  EXPECT_THAT(parts.rest, ElementsAre("run", "other", "--ranks"));
}

TEST(KnownOptions, PassesOverWhatIsUnknown) {
  EXPECT_THAT(
      known_options(training_options(), {"--max-rungs", "5", "--ranks=2", "cmd", "--ranks=3"}, Grammar::command),
      ElementsAre("--ranks=2"));
  EXPECT_THAT(known_options(training_options(), {"--ranks"}, Grammar::command), IsEmpty());
}

TEST(HelpText, HasGroupsDefaultsAndNoHiddenOption) {
  const std::string help = help_text(training_options(), 80);
  EXPECT_THAT(help, HasSubstr("Training:\n"));
  EXPECT_THAT(help, HasSubstr("--ranks N (=1)"));
  EXPECT_THAT(help, HasSubstr("--deepspeed_config FILE"));
  EXPECT_THAT(help, Not(HasSubstr("--deepspeed ")));
}

}  // namespace
}  // namespace dsat::cli_kit
