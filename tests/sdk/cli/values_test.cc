// Values of options by their kinds; a refusal names option, text and what was expected.
#include "dsat/cli/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat::cli_kit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Values values_of(const Tokens& options) {
  OptionSet set;
  set.add_group("Options",
                {Option::integer("max-trials", "").from(1, Option::kLargestInt).also("-mt"),
                 Option::integer("global-batch", "").from(1), Option::integer("slots", "").from(1).or_word("auto"),
                 Option::number("num-params", "").from(1), Option::size("device-memory", "").from(Option::kLeastMemory),
                 Option::duration("time-budget", ""), Option::choice("trial-cwd", {"keep", "copy"}, ""),
                 Option::choice("mode", {"a", "b", "c"}, ""), Option::text("metric", "NAME", ""),
                 Option::path("dir", "DIR", ""), Option::text("arg-mapping", "KEY=FLAG", "").when_repeated(Again::adds),
                 Option::text("seed", "N", "").when_repeated(Again::replaces), Option::toggle("quiet", "")});
  return Values(set, options);
}

std::string refusal(const std::string& option) {
  return error_of([&] { values_of({option}); });
}

TEST(Values, WhatIsNotGivenIsNotThere) {
  const Values values = values_of({});
  EXPECT_FALSE(values.given("max-trials"));
  EXPECT_FALSE(values.integer("max-trials"));
  EXPECT_FALSE(values.text("metric"));
  EXPECT_FALSE(values.size("device-memory"));
  EXPECT_FALSE(values.duration("time-budget"));
}

TEST(Values, IntegersAreSignedAndRangeChecked) {
  EXPECT_EQ(values_of({"--max-trials=5"}).small_integer("max-trials"), 5);
  EXPECT_EQ(refusal("--max-trials=-1"), "--max-trials (-mt) -1: expected an integer from 1 to 2147483647");
  for (const char* text : {"0", "2147483648", "99999999999", "99999999999999999999999", "x", "5x", "5.0", "1e3", "0x10",
                           " 5", "+5", "-"}) {
    EXPECT_THAT(refusal(std::string("--max-trials=") + text), HasSubstr("expected an integer from 1 to 2147483647"))
        << text;
  }
}

TEST(Values, LargeIntegersHaveNoUpperBoundToName) {
  EXPECT_EQ(values_of({"--global-batch=99999999999"}).integer("global-batch"), 99999999999);
  EXPECT_EQ(refusal("--global-batch=0"), "--global-batch 0: expected an integer of at least 1");
}

TEST(Values, AWordMayStandInForAnInteger) {
  EXPECT_EQ(values_of({"--slots=4"}).small_integer("slots"), 4);
  EXPECT_FALSE(values_of({"--slots=auto"}).small_integer("slots"));
  EXPECT_TRUE(values_of({"--slots=auto"}).given("slots"));
  EXPECT_EQ(refusal("--slots=all"), "--slots all: expected an integer of at least 1, or auto");
}

TEST(Values, NumbersMayBeWrittenWithAnExponent) {
  EXPECT_EQ(values_of({"--num-params=7.5e9"}).number("num-params"), 7.5e9);
  EXPECT_EQ(values_of({"--num-params=124"}).number("num-params"), 124.0);
  for (const char* text : {"many", "nan", "inf", "1e999", "7.5e9x", "-3"}) {
    EXPECT_EQ(refusal(std::string("--num-params=") + text),
              "--num-params " + std::string(text) + ": expected a number of at least 1, such as 7.5e9");
  }
}

TEST(Values, SizesAndDurationsNameTheOption) {
  EXPECT_EQ(values_of({"--device-memory=96MiB"}).size("device-memory"), 96u << 20);
  EXPECT_EQ(values_of({"--time-budget=2h"}).duration("time-budget"), std::chrono::hours(2));
  EXPECT_THAT(refusal("--device-memory=lots"), HasSubstr("--device-memory: 'lots' is not a size"));
  EXPECT_THAT(refusal("--device-memory=0"), HasSubstr("--device-memory 0: expected a size above 0"));
  EXPECT_EQ(refusal("--device-memory=80"), "--device-memory 80: a unit is missing: 80GB?");
  EXPECT_THAT(refusal("--device-memory=80kB"), HasSubstr("expected a size of at least 1048576 bytes"));
  EXPECT_EQ(values_of({"--device-memory=80000000000"}).size("device-memory"), 80000000000u);
  EXPECT_THAT(refusal("--time-budget=soon"), HasSubstr("--time-budget: 'soon' is not a duration"));
  EXPECT_THAT(refusal("--time-budget=0s"), HasSubstr("--time-budget 0s: expected a duration above 0"));
}

TEST(Values, ChoicesAreListedWhenNoneFits) {
  EXPECT_EQ(values_of({"--trial-cwd=copy"}).text("trial-cwd"), "copy");
  EXPECT_EQ(refusal("--trial-cwd=move"), "--trial-cwd move: choose keep or copy");
  EXPECT_EQ(refusal("--mode=d"), "--mode d: choose a, b or c");
}

TEST(Values, TextInMessagesIsAsAShellTakesIt) {
  EXPECT_EQ(refusal("--trial-cwd="), "--trial-cwd '': choose keep or copy");
  EXPECT_EQ(refusal("--trial-cwd=a b"), "--trial-cwd 'a b': choose keep or copy");
}

TEST(Values, APathIsNotEmpty) {
  EXPECT_EQ(refusal("--dir="), "--dir is empty: name a path");
  EXPECT_EQ(values_of({"--metric="}).text("metric"), "");
}

TEST(Values, AnOptionThatMayBeReplacedHasItsLastValue) {
  EXPECT_EQ(values_of({"--seed=1", "--seed=2"}).text("seed"), "2");
}

TEST(Values, AnOptionGivenTwiceIsRefusedUnlessItMayBeRepeated) {
  EXPECT_EQ(error_of([] {
              values_of({"--max-trials=5", "--max-trials=6"});
            }),
            "--max-trials (-mt) is given twice: give it once");
  EXPECT_THAT(values_of({"--arg-mapping=a=-b", "--arg-mapping=c=-d"}).texts("arg-mapping"),
              ElementsAre("a=-b", "c=-d"));
  EXPECT_TRUE(values_of({"--quiet", "--quiet"}).given("quiet"));
}

}  // namespace
}  // namespace dsat::cli_kit
