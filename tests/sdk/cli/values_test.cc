// Values of options by their kinds; a refusal names option, text and what was expected.
#include "dsat/cli/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat::cli_kit {
namespace {

using ::testing::AllOf;
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
  EXPECT_THAT(refusal("--max-trials=-1"), AllOf(HasSubstr("--max-trials (-mt) -1"), HasSubstr("1 to 2147483647")));
  for (const char* text : {"0", "2147483648", "99999999999", "99999999999999999999999", "x", "5x", "5.0", "1e3", "0x10",
                           " 5", "+5", "-"}) {
    EXPECT_THAT(refusal(std::string("--max-trials=") + text), HasSubstr("1 to 2147483647")) << text;
  }
}

TEST(Values, LargeIntegersHaveNoUpperBoundToName) {
  EXPECT_EQ(values_of({"--global-batch=99999999999"}).integer("global-batch"), 99999999999);
  EXPECT_THAT(refusal("--global-batch=0"), AllOf(HasSubstr("--global-batch 0"), HasSubstr("at least 1")));
}

TEST(Values, AWordMayStandInForAnInteger) {
  EXPECT_EQ(values_of({"--slots=4"}).small_integer("slots"), 4);
  EXPECT_FALSE(values_of({"--slots=auto"}).small_integer("slots"));
  EXPECT_TRUE(values_of({"--slots=auto"}).given("slots"));
  EXPECT_THAT(refusal("--slots=all"), AllOf(HasSubstr("--slots all"), HasSubstr("or auto")));
}

TEST(Values, NumbersMayBeWrittenWithAnExponent) {
  EXPECT_EQ(values_of({"--num-params=7.5e9"}).number("num-params"), 7.5e9);
  EXPECT_EQ(values_of({"--num-params=124"}).number("num-params"), 124.0);
  for (const char* text : {"many", "nan", "inf", "1e999", "7.5e9x", "-3"}) {
    EXPECT_THAT(refusal(std::string("--num-params=") + text),
                AllOf(HasSubstr("--num-params " + std::string(text)), HasSubstr("at least 1"), HasSubstr("7.5e9")));
  }
}

TEST(Values, SizesAndDurationsNameTheOption) {
  EXPECT_EQ(values_of({"--device-memory=96MiB"}).size("device-memory"), 96u << 20);
  EXPECT_EQ(values_of({"--time-budget=2h"}).duration("time-budget"), std::chrono::hours(2));
  EXPECT_THAT(refusal("--device-memory=lots"), HasSubstr("--device-memory: 'lots'"));
  EXPECT_THAT(refusal("--device-memory=0"), AllOf(HasSubstr("--device-memory 0"), HasSubstr("above 0")));
  EXPECT_THAT(refusal("--device-memory=80"), AllOf(HasSubstr("--device-memory 80"), HasSubstr("80GB?")));
  EXPECT_THAT(refusal("--device-memory=80kB"), HasSubstr("at least 1048576"));
  EXPECT_EQ(values_of({"--device-memory=80000000000"}).size("device-memory"), 80000000000u);
  EXPECT_THAT(refusal("--time-budget=soon"), HasSubstr("--time-budget: 'soon'"));
  EXPECT_THAT(refusal("--time-budget=0s"), AllOf(HasSubstr("--time-budget 0s"), HasSubstr("above 0")));
}

TEST(Values, ChoicesAreListedWhenNoneFits) {
  EXPECT_EQ(values_of({"--trial-cwd=copy"}).text("trial-cwd"), "copy");
  EXPECT_THAT(refusal("--trial-cwd=move"), AllOf(HasSubstr("--trial-cwd move"), HasSubstr("keep or copy")));
  EXPECT_THAT(refusal("--mode=d"), AllOf(HasSubstr("--mode d"), HasSubstr("b or c")));
}

TEST(Values, TextInMessagesIsAsAShellTakesIt) {
  EXPECT_THAT(refusal("--trial-cwd="), HasSubstr("--trial-cwd ''"));
  EXPECT_THAT(refusal("--trial-cwd=a b"), HasSubstr("--trial-cwd 'a b'"));
}

TEST(Values, APathIsNotEmpty) {
  EXPECT_THAT(refusal("--dir="), HasSubstr("--dir is empty"));
  EXPECT_EQ(values_of({"--metric="}).text("metric"), "");
}

TEST(Values, AnOptionThatMayBeReplacedHasItsLastValue) {
  EXPECT_EQ(values_of({"--seed=1", "--seed=2"}).text("seed"), "2");
}

TEST(Values, AnOptionGivenTwiceIsRefusedUnlessItMayBeRepeated) {
  EXPECT_THAT(error_of([] {
                values_of({"--max-trials=5", "--max-trials=6"});
              }),
              AllOf(HasSubstr("--max-trials (-mt)"), HasSubstr("twice")));
  EXPECT_THAT(values_of({"--arg-mapping=a=-b", "--arg-mapping=c=-d"}).texts("arg-mapping"),
              ElementsAre("a=-b", "c=-d"));
  EXPECT_TRUE(values_of({"--quiet", "--quiet"}).given("quiet"));
}

}  // namespace
}  // namespace dsat::cli_kit
