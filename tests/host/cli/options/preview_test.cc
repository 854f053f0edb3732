// The first look at a command line, before the plugins' options are known.
#include "options/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "options/study_options.h"

namespace dsat::cli {
namespace {

TEST(Preview, FindsStrategiesAmongOptionsThatAreNotKnownYet) {
  const Preview found = preview(tune_options(), {"--max-rungs", "5", "--divisor=3", "--searcher", "a", "--flag",
                                                 "--profiler=p", "--help", "--", "--searcher", "b"});
  EXPECT_EQ(found.searcher, "a");
  EXPECT_EQ(found.profiler, "p");
  EXPECT_TRUE(found.help);
}

TEST(Preview, SaysWhatAPluginsProcessMayTakeBeforeOneIsLoaded) {
  const OptionSet set = tune_options();
  const Preview found =
      preview(set, {"--max-rungs", "5", "--plugin-timeout", "2s", "--isolation", "process", "./train"});
  const host::PluginProcesses processes = plugin_processes(Values(set, found.plugin_processes));
  EXPECT_EQ(processes.plugin_timeout, std::chrono::seconds(2));
  EXPECT_EQ(processes.isolation, host::Isolation::process);
}

TEST(Preview, TellsTheWholeHelpFromTheShortOne) {
  for (const Grammar grammar : {Grammar::command, Grammar::operands}) {
    EXPECT_TRUE(preview(tune_options(), {"--help", "all"}, grammar).help_all);
    EXPECT_TRUE(preview(tune_options(), {"--searcher", "x", "-h", "all"}, grammar).help_all);
    EXPECT_FALSE(preview(tune_options(), {"--help"}, grammar).help_all);
    EXPECT_TRUE(preview(tune_options(), {"--help", "train"}, grammar).help);
  }
  EXPECT_FALSE(preview(tune_options(), {"--help", "train", "all"}).help_all);
}

TEST(Preview, DoesNotLookIntoTheCommand) {
  const Preview found = preview(tune_options(), {"--max-trials", "5", "./train", "--searcher", "x", "--help"});
  EXPECT_FALSE(found.searcher);
  EXPECT_FALSE(found.help);
}

TEST(Preview, LeavesErrorsToTheRealReading) {
  EXPECT_EQ(preview(tune_options(), {"--metric", "--searcher", "a"}).searcher, "a");
}

}  // namespace
}  // namespace dsat::cli
