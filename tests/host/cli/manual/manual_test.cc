// The manual page and the completions have every sub-command and every option that --help has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "host/cli/terminal/captured.h"
#include "options/actions.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string output_of(const Tokens& arguments) {
  Captured captured;
  EXPECT_EQ(run(arguments, captured.console), 0);
  return captured.out();
}

TEST(Manual, HasEverySubCommand) { EXPECT_THAT(words_of_manual(), IsSupersetOf(sub_command_words())); }

TEST(Manual, HasEveryOption) {
  const std::string page = output_of({"man"});
  EXPECT_THAT(page, HasSubstr(".TH dsat-host 1"));
  const OptionSet options = tune_options();
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string completion = output_of({"completion", shell});
    for (const Option& option : options.options()) {
      const std::string name = shell == std::string("fish") ? "-l " + option.name + " " : "--" + option.name;
      EXPECT_EQ(completion.find(name) == std::string::npos, option.hidden) << shell << " " << option.name;
    }
  }
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-max\\-trials\\fR \\fIN\\fR"));
  EXPECT_THAT(page, Not(HasSubstr("\n'")));
}

}  // namespace
}  // namespace dsat::cli
