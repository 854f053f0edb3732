// The grammar of the command-line kit on dsat-host's own options: what is its, what is the user's command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "dsat/error.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Split split_command(const Tokens& arguments) { return split(tune_options(), arguments, Grammar::command); }

std::string refusal(const Tokens& arguments) {
  return error_of([&] { split_command(arguments); });
}

TEST(Split, OptionsEndAtTwoDashes) {
  const Split parts = split_command({"--max-trials", "5", "--", "--quiet", "train"});
  EXPECT_THAT(parts.options, ElementsAre("--max-trials=5"));
  EXPECT_THAT(parts.rest, ElementsAre("--quiet", "train"));
  EXPECT_TRUE(parts.after_dashes);
}

TEST(Split, OptionsEndAtTheFirstTokenThatNoOptionTakes) {
  const Split parts = split_command({"--quiet", "./train", "--max-trials", "5", "--"});
  EXPECT_THAT(parts.options, ElementsAre("--quiet"));
  EXPECT_THAT(parts.rest, ElementsAre("./train", "--max-trials", "5", "--"));
  EXPECT_FALSE(parts.after_dashes);
}

TEST(Split, ShortNamesOfSeveralLettersAreNoShortNameWithAValue) {
  EXPECT_THAT(split_command({"-mt", "5", "-mct", "2", "-ms", "4", "-m", "latency", "-r", "7"}).options,
              ElementsAre("--max-trials=5", "--max-concurrent-trials=2", "--max-slots=4", "--metric=latency",
                          "--random-seed=7"));
}

TEST(Split, ValuesMayBeAttachedToShortAndLongNames) {
  EXPECT_THAT(split_command({"-mt=5", "--metric=latency", "--arg-mapping=a=--b"}).options,
              ElementsAre("--max-trials=5", "--metric=latency", "--arg-mapping=a=--b"));
}

TEST(Split, UnderscoresInLongNamesStandForHyphens) {
  EXPECT_THAT(split_command({"--start_profile-step", "1", "--start_profile_step=2", "--random_seed", "3"}).options,
              ElementsAre("--start-profile-step=1", "--start-profile-step=2", "--random-seed=3"));
}

TEST(Split, StagesEndWhereTheCommandBegins) {
  const Split parts = split_command({"-z", "0", "3", "train", "1"});
  EXPECT_THAT(parts.options, ElementsAre("--zero-stages=0", "--zero-stages=3"));
  EXPECT_THAT(parts.rest, ElementsAre("train", "1"));
}

TEST(Split, StagesMayBeFollowedByAnOption) {
  EXPECT_THAT(split_command({"--zero-stages", "1", "2", "--quiet"}).options,
              ElementsAre("--zero-stages=1", "--zero-stages=2", "--quiet"));
  EXPECT_THAT(split_command({"--zero-stages=2", "train"}).options, ElementsAre("--zero-stages=2"));
}

TEST(Split, StagesMayHaveCommas) {
  EXPECT_THAT(split_command({"-z", "1,2", "train"}).options, ElementsAre("--zero-stages=1", "--zero-stages=2"));
  EXPECT_THAT(split_command({"--zero-stages=0,3", "train"}).options, ElementsAre("--zero-stages=0", "--zero-stages=3"));
  EXPECT_THAT(refusal({"-z", "1,7", "train"}), AllOf(HasSubstr("0 1 2 3"), HasSubstr("'1,7'")));
  EXPECT_THAT(refusal({"-z", "1,"}), HasSubstr("0 1 2 3"));
  EXPECT_THAT(refusal({"--zero-stages=1", "2", "train"}), AllOf(HasSubstr("'2'"), HasSubstr("--zero-stages=1,2")));
}

TEST(Split, WhatIsNoStageIsRefused) {
  for (const Tokens& arguments : {Tokens{"-z", "4"}, Tokens{"-z", "1", "7", "train"}, Tokens{"-z", "-1"},
                                  Tokens{"-z", "train"}, Tokens{"-z"}, Tokens{"-z=5"}, Tokens{"-z", "--", "train"}}) {
    EXPECT_THAT(refusal(arguments), AllOf(HasSubstr("--zero-stages"), HasSubstr("0 1 2 3")));
  }
}

TEST(Split, NegativeNumbersAreValues) {
  EXPECT_THAT(split_command({"-mt", "-1"}).options, ElementsAre("--max-trials=-1"));
}

TEST(Split, AMissingValueIsRefused) {
  for (const Tokens& arguments : {Tokens{"--metric"}, Tokens{"--metric", "--quiet"}, Tokens{"--metric", "--", "train"},
                                  Tokens{"--metric="}, Tokens{"--metric", "-mt", "5"}, Tokens{"--metric", ""}}) {
    EXPECT_THAT(refusal(arguments), AllOf(HasSubstr("--metric (-m)"), HasSubstr("--metric NAME")));
  }
}

TEST(Split, ASwitchTakesNoValue) {
  EXPECT_THAT(refusal({"--quiet=yes"}), AllOf(StartsWith("--quiet "), HasSubstr("'=yes'")));
}

TEST(Split, UnknownOptionsAreRefusedWithTheNearest) {
  EXPECT_THAT(refusal({"--max-trails", "5"}), AllOf(HasSubstr("--max-trails"), HasSubstr("--max-trials?")));
  EXPECT_THAT(refusal({"-metric", "5"}), AllOf(HasSubstr("option -metric"), HasSubstr("--metric?")));
  EXPECT_THAT(refusal({"--autotuning", "train.py", "--deepspeed", "ds.json"}), HasSubstr("tune or run"));
  EXPECT_THAT(refusal({"--frobnicate"}), AllOf(HasSubstr("--frobnicate"), HasSubstr("--help")));
}

TEST(Split, NamesAreNotGuessedAndShortOnesNotSticky) {
  EXPECT_THAT(refusal({"--max-tri", "5"}), HasSubstr("unknown option --max-tri"));
  EXPECT_THAT(refusal({"-mt5"}), HasSubstr("unknown option -mt5"));
  EXPECT_THAT(refusal({"-r42"}), HasSubstr("unknown option -r42"));
}

TEST(Split, SubCommandsTakeOptionsAnywhere) {
  const Split parts = split(show_options(), {"dir", "--json", "other"}, Grammar::operands);
  EXPECT_THAT(parts.options, ElementsAre("--json"));
  EXPECT_THAT(parts.rest, ElementsAre("dir", "other"));
  EXPECT_THAT(split(show_options(), {"--", "--json"}, Grammar::operands).rest, ElementsAre("--json"));
}

TEST(Split, NothingAtAllIsNothing) {
  const Split parts = split_command({});
  EXPECT_THAT(parts.options, IsEmpty());
  EXPECT_THAT(parts.rest, IsEmpty());
}

}  // namespace
}  // namespace dsat::cli
