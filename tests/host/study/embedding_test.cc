// What only a program that embeds the library can get wrong: the command line writes these members itself. Each is
// refused before anything runs.
#include <gmock/gmock.h>

#include <csignal>

#include "host/plan/plan_fixture.h"

namespace dsat::host {
namespace {

using ::testing::StartsWith;

class EmbeddingTest : public PlanTest {};

TEST_F(EmbeddingTest, MembersThatMakeNoSenseAreRefusedAndNotIgnored) {
  const std::vector<std::pair<Change, std::string>> bad = {
      {[](StudyOptions& o) { o.runner = "kubernetes"; }, "--runner kubernetes: "},
      {[](StudyOptions& o) { o.cwd = "/no/such/folder"; }, "cwd /no/such/folder: "},
      {[](StudyOptions& o) { o.config_overwrites = 5; }, "config_overwrites: 5 "},
      {[](StudyOptions& o) { o.hyperparameters = "x"; }, "hyperparameters: \"x\" "},
      {[](StudyOptions& o) {
         o.environment = {"PATH=/bin", "NOEQUALS"};
       },
       "environment: 'NOEQUALS' "},
      {[](StudyOptions& o) { o.plugin_timeout = {}; }, "--plugin-timeout: "},
  };
  for (const auto& [change, begin] : bad) EXPECT_THAT(why_not(change), StartsWith(begin));
  EXPECT_EQ(why_not([](StudyOptions&) {}), "no error");
}

TEST_F(EmbeddingTest, AProcessThatIgnoresTheEndsOfItsChildrenIsRefused) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto created = Study::create({}), resumed = Study::resume(dir() / "none", {});
  std::signal(SIGCHLD, before);
  for (const auto* study : {&created, &resumed}) {
    ASSERT_FALSE(study->ok());
    EXPECT_THAT(study->status().message(), HasSubstr("SIGCHLD to SIG_DFL"));
  }
}

}  // namespace
}  // namespace dsat::host
