// What only a program that embeds the library can get wrong: the command line writes these members itself. Each is
// refused before anything runs.
#include <csignal>

#include "host/plan/plan_fixture.h"

namespace dsat::host {
namespace {

class EmbeddingTest : public PlanTest {};

TEST_F(EmbeddingTest, MembersThatMakeNoSenseAreRefusedAndNotIgnored) {
  const std::vector<std::pair<Change, std::string>> bad = {
      {[](StudyOptions& o) { o.runner = "kubernetes"; },
       "--runner kubernetes: there is no such runner; it is local, pilot, slurm or prefix"},
      {[](StudyOptions& o) { o.cwd = "/no/such/folder"; },
       "cwd /no/such/folder: no such directory; name the one that the command is to run in"},
      {[](StudyOptions& o) { o.config_overwrites = 5; },
       "config_overwrites: 5 is no JSON object; leave it null for none"},
      {[](StudyOptions& o) { o.hyperparameters = "x"; },
       "hyperparameters: \"x\" is no JSON object; leave it null for none"},
      {[](StudyOptions& o) {
         o.environment = {"PATH=/bin", "NOEQUALS"};
       },
       "environment: 'NOEQUALS' is not of the form NAME=value"},
      {[](StudyOptions& o) { o.plugin_timeout = {}; }, "--plugin-timeout: must be above 0"},
  };
  for (const auto& [change, line] : bad) EXPECT_EQ(why_not(change), line);
  EXPECT_EQ(why_not([](StudyOptions&) {}), "no error");
}

TEST_F(EmbeddingTest, AProcessThatIgnoresTheEndsOfItsChildrenIsRefused) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto created = Study::create({}), resumed = Study::resume(dir() / "none", {});
  std::signal(SIGCHLD, before);
  for (const auto* study : {&created, &resumed}) {
    ASSERT_FALSE(study->ok());
    EXPECT_EQ(study->status().message(),
              "this process ignores SIGCHLD, so that the system forgets how its trials end; set SIGCHLD to SIG_DFL");
  }
}

}  // namespace
}  // namespace dsat::host
