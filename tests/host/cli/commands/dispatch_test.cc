// The program as a whole, as far as it runs no trial.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "commands/commands.h"
#include "host/cli/terminal/captured.h"
#include "support/temp_dir.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Ran {
  explicit Ran(const Tokens& arguments) {
    Captured captured;
    status = run(arguments, captured.console);
    out = captured.out();
    err = captured.err();
  }
  int status;
  std::string out, err;
};

TEST(Run, HelpAndVersionGoToStandardOutput) {
  const Ran help({"--help"});
  EXPECT_EQ(help.status, kBestFound);
  EXPECT_THAT(help.out, AllOf(StartsWith("Usage: dsat-host"), HasSubstr("--max-trials")));
  EXPECT_EQ(help.err, "");
  const Ran version({"--version"});
  EXPECT_EQ(version.status, kBestFound);
  EXPECT_THAT(version.out, StartsWith("dsat-host "));
}

TEST(Run, EverySubCommandHasHelp) {
  for (const char* word :
       {"resume", "show", "estimate", "space", "plugins", "validate", "new-plugin", "completion", "man"}) {
    const Ran ran({word, "--help"});
    EXPECT_EQ(ran.status, kBestFound) << word;
    EXPECT_THAT(ran.out, StartsWith("Usage: dsat-host " + std::string(word)));
  }
}

TEST(Run, WrongUsageIsStatusTwoWithOneLine) {
  const std::vector<Tokens> cases{{"validate"},
                                  {"space"},
                                  {"new-plugin"},
                                  {"man", "dsat-trial"},
                                  {"completion"},
                                  {"completion", "tcsh"},
                                  {"completion", "bash", "zsh"},
                                  {"new-plugin", "a", "b"},
                                  {"new-plugin", "asha"},
                                  {"new-plugin", "climb", "--language", "fortran"},
                                  {"new-plugin", "tmp/climb"},
                                  {"asha", "no-such-file.yaml", "."},
                                  {"asha"},
                                  {"resume"},
                                  {"resume", "a", "b"},
                                  {"show"},
                                  {"show", "a", "b"},
                                  {"show", "--jsno", "a"},
                                  {"plugins", "x"},
                                  {"estimate"},
                                  {"estimate", "--num-params", "1e9"},
                                  {"estimate", "--num-params", "x", "--world-size", "1"},
                                  {"estimate", "--num-params", "1e9", "--world-size", "0"},
                                  {"estimate", "--num-params", "1e9", "--world-size", "1", "--layers", "2"},
                                  {"estimate", "--num-params", "1e9", "--world-size", "1", "--precision", "fp8"},
                                  {"--searcher", "no-such-plugin", "--", "true"}};
  for (const Tokens& arguments : cases) {
    const Ran ran(arguments);
    EXPECT_EQ(ran.status, kUsage) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, StartsWith("dsat-host: "));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Run, ValidateOfABareNameNamesTheFileOfThatPlugin) {
  const TempDir folder;
  const std::filesystem::path file = folder.path() / "libladder.so";
  write_text(file, "");
  ::setenv("DSAT_PLUGIN_PATH", folder.path().c_str(), 1);
  for (const char* name : {"ladder", "libladder.so"}) {
    const Ran ran({"validate", name});
    EXPECT_EQ(ran.status, kUsage);
    EXPECT_THAT(ran.err,
                AllOf(StartsWith("dsat-host: " + std::string(name) + ": no such file"), HasSubstr(file.string())));
  }
  ::unsetenv("DSAT_PLUGIN_PATH");
  const Ran ran({"validate", "ladder"});
  EXPECT_EQ(ran.status, kUsage);
  EXPECT_EQ(ran.err, "dsat-host: ladder: no such file\n");
}

TEST(Run, ResumeTakesLimitsAndASearcher) {
  const Ran ran({"resume", "dir", "--metric", "latency"});
  EXPECT_EQ(ran.status, kUsage);
  EXPECT_THAT(ran.err, HasSubstr("--metric cannot change"));
}

TEST(Run, ADirectoryWithoutAStudyIsRefused) {
  for (const char* word : {"resume", "show"}) {
    const Ran ran({word, "/nonexistent/study"});
    EXPECT_EQ(ran.status, kUsage) << word;
    EXPECT_THAT(ran.err, HasSubstr("/nonexistent/study"));
  }
}

TEST(Estimate, GivesTheNumbersOfTheZeroPaper) {
  const Ran ran({"estimate", "--num-params", "7.5e9", "--world-size", "64", "--precision", "fp16", "--json"});
  EXPECT_EQ(ran.status, kBestFound);
  const Json stages = Json::parse(ran.out)["stages"];
  ASSERT_EQ(stages.size(), 4u);
  const double expected[] = {120e9, 31.4e9, 16.6e9, 1.9e9};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stages[i]["stage"], i);
    EXPECT_NEAR(stages[i]["model_state_bytes"].get<double>(), expected[i], 0.05e9);
    EXPECT_TRUE(stages[i]["activation_bytes_per_sample"].is_null());
    EXPECT_TRUE(stages[i]["max_micro_batch"].is_null());
  }
}

TEST(Estimate, TakesTheLeastThatThereIs) {
  const Ran ran({"estimate", "--num-params", "1", "--trainable-params", "0", "--world-size", "1", "--layers", "1",
                 "--hidden", "1", "--heads", "1", "--seq", "1"});
  EXPECT_EQ(ran.status, kBestFound) << ran.err;
}

TEST(Estimate, IsATableForPeople) {
  const Ran ran({"estimate", "--num-params", "124e6", "--world-size", "8", "--layers", "12", "--hidden", "768",
                 "--heads", "12", "--seq", "1024", "--device-memory", "80GB"});
  EXPECT_EQ(ran.status, kBestFound);
  EXPECT_THAT(ran.out, StartsWith("stage  model states  activations/sample  max micro batch\n"));
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 5);
}

}  // namespace
}  // namespace dsat::cli
