// The best configuration as what it changes in the user's own.
#include "terminal/changes.h"

#include <gmock/gmock.h>

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

host::StudyFacts facts() {
  host::StudyFacts facts;
  facts.record.best = host::BestRecord{};
  facts.record.best->trial = 13;
  return facts;
}

TEST(Changes, AreALineAKey) {
  host::StudyFacts study = facts();
  study.changes = {{"zero_optimization.stage", 1, 3}, {"zero_optimization.overlap_comm", Json(), true}};
  EXPECT_THAT(change_lines(study),
              ElementsAre(HasSubstr("(trial 13) against"), "  zero_optimization.stage         1          ->  3",
                          "  zero_optimization.overlap_comm  (not set)  ->  true"));
}

TEST(Changes, AnotherGlobalBatchIsANoteOnTheLearningRate) {
  host::StudyFacts study = facts();
  study.changes = {{"train_batch_size", 32, 128}};
  EXPECT_THAT(change_lines(study), Contains(HasSubstr("128 samples in place of 32")).Times(0));
  study.changed_train_batch = true;
  EXPECT_THAT(change_lines(study).back(), HasSubstr("128 samples in place of 32"));
  EXPECT_THAT(change_lines(study).back(), HasSubstr("--global-batch 32"));
  study.changes = {{"train_batch_size", Json(), 128}};
  EXPECT_THAT(change_lines(study).back(), HasSubstr("--global-batch N"));
}

TEST(Changes, OtherDevicesAreNamed) {
  host::StudyFacts study = facts();
  study.record.trials.resize(14);
  study.record.trials[0].config = {{"autotuning", {{"num_gpus", 2}, {"num_nodes", 1}}}};
  study.record.trials[13].config = {{"autotuning", {{"num_gpus", 4}, {"num_nodes", 2}}}};
  study.baseline = 0;
  EXPECT_THAT(change_lines(study),
              ElementsAre(AllOf(HasSubstr("(trial 13): your own"), HasSubstr("8 devices"), EndsWith("2"))));
  study.changes = {{"zero_optimization.stage", 1, 3}};
  EXPECT_THAT(change_lines(study)[0], AllOf(HasSubstr("(trial 13) against"), HasSubstr("8 devices"), EndsWith("2:")));
}

TEST(Changes, ThereMayBeNone) {
  EXPECT_THAT(change_lines(facts()), ElementsAre(AllOf(HasSubstr("(trial 13)"), HasSubstr("unchanged"))));
  EXPECT_THAT(change_lines(host::StudyFacts()), IsEmpty()) << "no best";
  host::StudyFacts replayed = facts();
  replayed.has_own = false;
  EXPECT_THAT(change_lines(replayed), IsEmpty());
}

TEST(Changes, LongAndHostileValuesStayInALine) {
  host::StudyFacts study = facts();
  study.changes = {{"a\x1b[2J\nb", std::string(500, 'x'), Json(std::string("\x1b[31m"))}};
  for (const std::string& line : change_lines(study)) {
    EXPECT_LE(line.size(), 100u);
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace dsat::cli
