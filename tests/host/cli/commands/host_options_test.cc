// The help of dsat-host: every option with its default, in the width of the terminal.
#include "commands/host_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/cli/help.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HelpText, ShowsEveryOptionWithItsDefaultAndShortName) {
  const OptionSet set = tune_options();
  const std::string help = help_text(set, 100);
  for (const Option& option : set.options()) {
    const bool shown = help.find("--" + option.name) != std::string::npos;
    EXPECT_EQ(shown, !option.hidden) << option.name;
  }
  EXPECT_THAT(help, HasSubstr("--max-trials N (=50)"));
  EXPECT_THAT(help, HasSubstr("-mt: "));
  EXPECT_THAT(help, HasSubstr("--searcher PLUGIN (=guided)"));
  EXPECT_THAT(help, HasSubstr("--runner local|pilot|slurm|sim"));
}

TEST(HelpText, OfTheExperimentFormHidesWhatIsRefusedThereAndNothingElse) {
  const OptionSet set = experiment_options();
  const std::string help = help_text(set, 100);
  for (const Option& option : set.options()) {
    EXPECT_EQ(option.hidden, option.name == "sim" || option.name == "ds-config") << option.name;
  }
  EXPECT_THAT(help, HasSubstr("--runner local|pilot|slurm (=local"));
  EXPECT_THAT(help, HasSubstr("--slurm-option WORD"));
  EXPECT_THAT(help, Not(HasSubstr("model of a cluster")));
}

TEST(HelpText, NamesAValueAsItIsTyped) {
  for (const OptionSet& set : {tune_options(), experiment_options(), resume_options()}) {
    EXPECT_THAT(help_text(set, 100), HasSubstr("--budget Ngpuh"));
  }
}

TEST(HelpText, FitsTheTerminal) {
  const std::string help = help_text(tune_options(), 80);
  size_t begin = 0;
  for (size_t end = help.find('\n'); end != std::string::npos; begin = end + 1, end = help.find('\n', begin)) {
    EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
  }
}

TEST(SizeOptions, LackTheirUnitBelowAMegabyte) {
  EXPECT_EQ(tune_options().find("--device-memory")->low, Option::kLeastMemory);
  EXPECT_EQ(estimate_options().find("--device-memory")->low, Option::kLeastMemory);
}

}  // namespace
}  // namespace dsat::cli
