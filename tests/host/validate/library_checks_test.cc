// What is reported of a library before any of its strategies is at work: what it is, and how it describes itself.
#include "validate/library_checks.h"

#include "dsat/option.h"
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::StartsWith;

PluginInfo described(const std::string& name, std::vector<OptionSpec> options = {}) {
  PluginInfo plugin;
  plugin.id = "test.it";
  plugin.name = name;
  plugin.version = "1.0.0";
  plugin.summary = "is described";
  plugin.options = Json::array();
  for (const OptionSpec& option : options) plugin.options.push_back(option.json());
  plugin.study = Json::object();
  return plugin;
}

TEST(CheckDescribed, ANameOfLettersDigitsAndAFewMarksPasses) {
  for (const char* name : {"climb", "Climb2", "my_climb-2.1"}) {
    EXPECT_EQ(check_described({described(name)}, {}).status, CheckStatus::passed) << name;
  }
}

TEST(CheckDescribed, ANameThatNobodyCanTypeHasFailed) {
  EXPECT_EQ(check_described({described("")}, {}).status, CheckStatus::failed);
  for (const char* name : {"two words", "a/b", "a;b", "bell\a", "line\nbreak", "-x",
                           "gr\xc3\xb6\xc3\x9f"
                           "er"}) {
    const CheckOutcome outcome = check_described({described(name)}, {});
    EXPECT_EQ(outcome.status, CheckStatus::failed) << name;
    EXPECT_THAT(outcome.reason, HasSubstr("as one word"));
    EXPECT_EQ(outcome.reason.find_first_of("\a\n"), std::string::npos) << outcome.reason;
  }
}

TEST(CheckDescribed, AnIdServesOneStrategyOfEachKind) {
  PluginInfo searcher = described("it"), profiler = described("it");
  profiler.kind = PluginKind::profiler;
  EXPECT_EQ(check_described({searcher, profiler}, {}).status, CheckStatus::passed);
  const CheckOutcome outcome = check_described({searcher, described("again")}, {});
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("test.it "), HasSubstr("2 times")));
}

TEST(CheckDescribed, AnOptionThatIsOneOfTheProgramsOwnIsWarnedOf) {
  PluginInfo plugin = described("it", {OptionSpec::integer("max-trials", 5, "at most")});
  EXPECT_EQ(check_described({plugin}, {"json"}).status, CheckStatus::passed);
  CheckOutcome outcome = check_described({plugin}, {"json", "max-trials"});
  EXPECT_EQ(outcome.status, CheckStatus::warned);
  EXPECT_THAT(outcome.reason, HasSubstr("--searcher.max-trials"));
  plugin.kind = PluginKind::profiler;
  outcome = check_described({plugin}, {"max-trials"});
  EXPECT_THAT(outcome.reason, HasSubstr("--profiler.max-trials"));
}

TEST(CheckDescribed, AMemberOfAnOptionThatNothingReadsIsWarnedOf) {
  PluginInfo plugin = described("it", {OptionSpec::integer("n", 5, "a number").min(1).max(9),
                                       OptionSpec::choice("way", {"up", "down"}, "up", "which way")});
  EXPECT_EQ(check_described({plugin}, {}).status, CheckStatus::passed);
  plugin.options[0]["maximum"] = 9;
  const CheckOutcome outcome = check_described({plugin}, {});
  EXPECT_EQ(outcome.status, CheckStatus::warned);
  EXPECT_THAT(outcome.reason, AllOf(StartsWith("test.it: option 'n'"), HasSubstr("'maximum'")));
}

CheckContext context_of(const std::string& library) {
  return {fixture_plugin(library), {}, [](const std::string&) {}};
}

TEST(CheckFile, ATrialForDsatTrialIsDistinguishedFromAPlugin) {
  const CheckOutcome outcome = check_file(context_of("trial_entry"));
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("dsat-trial, as --trial "));
  EXPECT_NE(check_file(context_of("bad_no_symbol")).status, CheckStatus::failed);
}

TEST(ValidatePlugin, TheProgramsOwnOptionsReachTheProcessThatReadsTheDescriptor) {
  PluginProcesses processes;
  processes.plugin_host = DSAT_PLUGIN_HOST;
  std::map<std::string, CheckResult> results;
  const auto keep = [&](const CheckResult& result) { results[result.check] = result; };
  ASSERT_TRUE(validate_plugin(fixture_plugin("defective"), processes, keep, {"marker"}).ok());
  EXPECT_EQ(results["descriptor"].status, CheckStatus::warned);
  EXPECT_THAT(results["descriptor"].reason, AllOf(HasSubstr("option 'marker'"), HasSubstr("dsat-host's own")));
}

}  // namespace
}  // namespace dsat::host
