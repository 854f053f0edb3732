// Options that plugins declare: their spellings, clashes of names, their help.
#include "options/plugin_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "dsat/cli/help.h"
#include "dsat/error.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

host::PluginInfo plugin(host::PluginKind kind, const std::string& name, const std::vector<Json>& options) {
  host::PluginInfo info;
  info.kind = kind;
  info.name = name;
  info.options = options;
  return info;
}

Json integer(const std::string& name) {
  return Json{{"name", name}, {"type", "int"}, {"default", 5}, {"help", "how many"}};
}

// A command line read with the options of two plugins.
struct Reading {
  Reading(const std::vector<Json>& searcher_options, const std::vector<Json>& profiler_options)
      : searcher(plugin(host::PluginKind::searcher, "ladder", searcher_options)),
        profiler(plugin(host::PluginKind::profiler, "probe", profiler_options)),
        set(tune_options()) {
    add_plugin_options(set, searcher, profiler);
  }
  Values values(const Tokens& arguments) const { return Values(set, split(set, arguments, Grammar::command).options); }
  Json of_searcher(const Tokens& arguments) const { return given_plugin_options(set, values(arguments), searcher); }
  Json of_profiler(const Tokens& arguments) const { return given_plugin_options(set, values(arguments), profiler); }
  std::string refusal(const Tokens& arguments) const {
    return error_of([&] { values(arguments); });
  }
  host::PluginInfo searcher, profiler;
  OptionSet set;
};

TEST(PluginOptions, AreTakenBarelyAndQualified) {
  const Reading reading({integer("max-rungs")}, {integer("repeats")});
  EXPECT_EQ(reading.of_searcher({"--max-rungs", "3"}), (Json{{"max-rungs", "3"}}));
  EXPECT_EQ(reading.of_searcher({"--searcher.max-rungs", "3"}), (Json{{"max-rungs", "3"}}));
  EXPECT_EQ(reading.of_profiler({"--profiler.repeats=2", "--max-rungs=3"}), (Json{{"repeats", "2"}}));
  EXPECT_EQ(reading.of_searcher({}), Json::object());
}

TEST(PluginOptions, OfTheOtherRoleAreUnknown) {
  const Reading reading({integer("max-rungs")}, {});
  EXPECT_THAT(reading.refusal({"--profiler.max-rungs", "3"}), HasSubstr("unknown option --profiler.max-rungs"));
}

TEST(PluginOptions, OneGivenUnderBothNamesIsGivenTwice) {
  const Reading reading({integer("max-rungs")}, {});
  EXPECT_THAT(reading.refusal({"--max-rungs", "3", "--searcher.max-rungs", "4"}), HasSubstr("is given twice"));
}

TEST(PluginOptions, AClashOfTheTwoPluginsNamesBothSpellings) {
  const Reading reading({integer("width")}, {integer("width")});
  EXPECT_THAT(reading.refusal({"--width", "3"}), AllOf(HasSubstr("--searcher.width"), HasSubstr("--profiler.width")));
  EXPECT_EQ(reading.of_searcher({"--searcher.width", "3", "--profiler.width", "4"}), (Json{{"width", "3"}}));
  EXPECT_EQ(reading.of_profiler({"--searcher.width", "3", "--profiler.width", "4"}), (Json{{"width", "4"}}));
}

TEST(PluginOptions, AClashWithTheHostIsAnErrorUntilThePluginsIsSpeltOut) {
  const Reading reading({integer("max-trials")}, {});
  EXPECT_THAT(reading.refusal({"--max-trials", "3"}),
              AllOf(HasSubstr("option of dsat-host"), HasSubstr("--searcher.max-trials")));
  const Tokens both{"--max-trials", "3", "--searcher.max-trials", "4"};
  EXPECT_EQ(reading.of_searcher(both), (Json{{"max-trials", "4"}}));
  EXPECT_EQ(reading.values(both).text("max-trials"), "3");
}

TEST(PluginOptions, AClashThatNobodyUsesIsNoError) {
  const Reading reading({integer("max-trials")}, {});
  EXPECT_EQ(reading.values({"-mt", "3"}).text("max-trials"), "3");
  EXPECT_EQ(reading.of_searcher({"--searcher.max-trials", "4"}), (Json{{"max-trials", "4"}}));
}

TEST(PluginOptions, AClashOfAllThreeNeedsBothSpeltOut) {
  const Reading reading({integer("max-trials")}, {integer("max-trials")});
  EXPECT_THAT(reading.refusal({"--max-trials", "3", "--searcher.max-trials", "4"}),
              HasSubstr("--searcher.max-trials and --profiler.max-trials"));
  EXPECT_EQ(reading.refusal({"--max-trials", "3", "--searcher.max-trials", "4", "--profiler.max-trials", "5"}),
            "no error");
}

TEST(PluginOptions, ABooleanNeedsNoValue) {
  const Reading reading({Json{{"name", "greedy"}, {"type", "bool"}, {"default", false}, {"help", "be greedy"}}}, {});
  EXPECT_EQ(reading.of_searcher({"--greedy", "train"}), (Json{{"greedy", "true"}}));
  EXPECT_EQ(reading.of_searcher({"--greedy=false", "train"}), (Json{{"greedy", "false"}}));
}

Json boolean(const std::string& name) {
  return Json{{"name", name}, {"type", "bool"}, {"default", true}, {"help", "whether"}};
}

TEST(PluginOptions, ABooleanIsTurnedOffByItsValueAndTheWayIsNamed) {
  EXPECT_THAT(Reading({boolean("b")}, {}).refusal({"--no-b"}), AllOf(HasSubstr("--no-b"), HasSubstr("type --b=false")));
  EXPECT_THAT(Reading({}, {boolean("be-greedy")}).refusal({"--no_be_greedy=1"}),
              AllOf(HasSubstr("--no-be-greedy"), HasSubstr("type --be-greedy=false")));
  EXPECT_THAT(Reading({boolean("b")}, {boolean("b")}).refusal({"--no-b"}),
              AllOf(HasSubstr("--no-b"), HasSubstr("type --searcher.b=false")));
}

TEST(PluginOptions, AnOptionWhoseNameBeginsWithNoStaysOne) {
  const Reading of_host({boolean("baseline")}, {});
  EXPECT_TRUE(of_host.values({"--no-baseline"}).given("no-baseline"));
  const Reading of_plugin({boolean("b"), boolean("no-b")}, {});
  EXPECT_EQ(of_plugin.of_searcher({"--no-b"}), (Json{{"no-b", "true"}}));
}

TEST(PluginOptions, StandInHelpWithDefaultAndChoices) {
  const Json choice{
      {"name", "order"}, {"type", "choice"}, {"choices", {"up", "down"}}, {"default", "up"}, {"help", "h"}};
  const Reading reading({integer("max-rungs"), choice}, {});
  const std::string help = help_text(reading.set, 100);
  EXPECT_THAT(help, HasSubstr("searcher ladder"));
  EXPECT_THAT(help, HasSubstr("--max-rungs N (=5)"));
  EXPECT_THAT(help, HasSubstr("--order up|down (=up)"));
}

TEST(PluginOptions, MisspeltOnesAreSuggested) {
  const Reading reading({integer("max-rungs")}, {});
  EXPECT_THAT(reading.refusal({"--max-rugs", "3"}), HasSubstr("--max-rungs?"));
}

}  // namespace
}  // namespace dsat::cli
