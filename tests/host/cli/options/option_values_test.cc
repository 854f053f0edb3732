#include "options/option_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Values values_of(const Tokens& options) { return Values(tune_options(), options); }

TEST(Values, WhatIsNotGivenIsNotThere) {
  const Values values = values_of({});
  EXPECT_FALSE(values.given("max-trials"));
  EXPECT_FALSE(values.integer("max-trials", 1));
  EXPECT_FALSE(values.text("metric"));
  EXPECT_FALSE(values.size("device-memory"));
  EXPECT_FALSE(values.duration("time-budget"));
}

TEST(Values, IntegersAreSignedAndRangeChecked) {
  EXPECT_EQ(values_of({"--max-trials=5"}).small_integer("max-trials", 1), 5);
  const auto refusal = [](const std::string& text) {
    return error_of([&] { values_of({"--max-trials=" + text}).small_integer("max-trials", 1); });
  };
  EXPECT_EQ(refusal("-1"), "--max-trials (-mt): '-1' is out of range: give an integer from 1 to 2147483647");
  EXPECT_THAT(refusal("0"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("2147483648"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("99999999999"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("99999999999999999999999"), HasSubstr("out of range"));
  for (const char* text : {"x", "5x", "5.0", "1e3", "0x10", " 5", "+5", "-"}) {
    EXPECT_THAT(refusal(text), HasSubstr("is no integer")) << text;
  }
}

TEST(Values, LargeIntegersHaveNoUpperBoundToName) {
  EXPECT_EQ(values_of({"--global-batch=99999999999"}).integer("global-batch", 1), 99999999999);
  EXPECT_EQ(error_of([] { values_of({"--global-batch=0"}).integer("global-batch", 1); }),
            "--global-batch: '0' is out of range: give an integer of at least 1");
}

TEST(Values, NumbersMayBeWrittenWithAnExponent) {
  const auto number = [](const std::string& text) {
    return Values(estimate_options(), {"--num-params=" + text}).number("num-params", 1);
  };
  EXPECT_EQ(number("7.5e9"), 7.5e9);
  EXPECT_EQ(number("124"), 124.0);
  for (const char* text : {"many", "nan", "inf", "1e999", "7.5e9x"}) {
    EXPECT_THAT(error_of([&] { number(text); }), HasSubstr("is no number")) << text;
  }
  EXPECT_THAT(error_of([&] { number("-3"); }), HasSubstr("is too small"));
}

TEST(Values, SizesAndDurationsNameTheOption) {
  EXPECT_EQ(values_of({"--device-memory=96MiB"}).size("device-memory"), 96u << 20);
  EXPECT_EQ(values_of({"--time-budget=2h"}).duration("time-budget"), std::chrono::hours(2));
  EXPECT_THAT(error_of([] { values_of({"--device-memory=lots"}).size("device-memory"); }),
              HasSubstr("--device-memory: "));
  EXPECT_THAT(error_of([] { values_of({"--device-memory=0"}).size("device-memory"); }), HasSubstr("no memory at all"));
  EXPECT_THAT(error_of([] { values_of({"--time-budget=soon"}).duration("time-budget"); }),
              HasSubstr("--time-budget: "));
  EXPECT_THAT(error_of([] { values_of({"--time-budget=0s"}).duration("time-budget"); }), HasSubstr("no time at all"));
}

TEST(Values, ChoicesAreListedWhenNoneFits) {
  EXPECT_EQ(values_of({"--trial-cwd=copy"}).choice("trial-cwd", {"keep", "copy"}), "copy");
  EXPECT_EQ(error_of([] {
              values_of({"--trial-cwd=move"}).choice("trial-cwd", {"keep", "copy"});
            }),
            "--trial-cwd: 'move' is none of keep, copy");
}

TEST(Values, AnOptionGivenTwiceIsRefusedUnlessItMayBeRepeated) {
  EXPECT_EQ(error_of([] {
              values_of({"--max-trials=5", "--max-trials=6"});
            }),
            "--max-trials (-mt) is given twice: give it once");
  EXPECT_THAT(values_of({"--arg-mapping=a=-b", "--arg-mapping=c=-d"}).texts("arg-mapping"),
              ElementsAre("a=-b", "c=-d"));
  EXPECT_THAT(values_of({"--zero-stages=1", "--zero-stages=2"}).texts("zero-stages"), ElementsAre("1", "2"));
  EXPECT_TRUE(values_of({"--quiet", "--quiet"}).given("quiet"));
}

TEST(HelpText, ShowsEveryOptionWithItsDefaultAndShortName) {
  const OptionSet set = tune_options();
  const std::string help = help_text(set, 100);
  for (const Option& option : set.options()) {
    const bool shown = help.find("--" + option.name) != std::string::npos;
    EXPECT_EQ(shown, option.refusal.empty() && !option.hidden) << option.name;
  }
  EXPECT_THAT(help, HasSubstr("--max-trials N (=50)"));
  EXPECT_THAT(help, HasSubstr("-mt: "));
  EXPECT_THAT(help, HasSubstr("--searcher PLUGIN (=guided)"));
}

TEST(HelpText, FitsTheTerminal) {
  const std::string help = help_text(tune_options(), 80);
  size_t begin = 0;
  for (size_t end = help.find('\n'); end != std::string::npos; begin = end + 1, end = help.find('\n', begin)) {
    EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
  }
}

}  // namespace
}  // namespace dsat::cli
