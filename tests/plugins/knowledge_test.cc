#include "knowledge.h"

#include <gtest/gtest.h>

#include "surface.h"

namespace dsat::search {
namespace {

class KnowledgeTest : public ::testing::Test {
 protected:
  Json config(int64_t micro_batch, int64_t bucket = 500000000, int stage = 1) const {
    Json config = study_.base_config;
    config["zero_optimization"] = {{"stage", stage}, {"reduce_bucket_size", bucket}};
    config["train_micro_batch_size_per_gpu"] = micro_batch;
    return config;
  }
  Ceiling ceiling(const Knowledge& knowledge, const Json& config) const {
    return knowledge.ceiling(knowledge.setup(config));
  }
  tests::Surface surface_;
  Study study_ = tests::make_study(surface_, tests::small_space({1, 2, 3}));
};

TEST_F(KnowledgeTest, OutOfMemoryBoundsTheSameAndHungrierConfigurations) {
  Knowledge knowledge(study_);
  knowledge.learn(0, config(20, 50000000), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_EQ(ceiling(knowledge, config(1, 50000000)).too_big, 20);
  EXPECT_EQ(ceiling(knowledge, config(1, 500000000)).too_big, 20);
  EXPECT_FALSE(ceiling(knowledge, config(1, 5000000)).too_big);
  EXPECT_FALSE(ceiling(knowledge, config(1, 500000000, 2)).too_big);
  EXPECT_LE(ceiling(knowledge, config(1)).possible, 19);
}

TEST_F(KnowledgeTest, WhatFittedFitsTheSameAndLeanerConfigurations) {
  Knowledge knowledge(study_);
  knowledge.learn(0, config(300, 50000000), Outcome::completed, 1.0, std::nullopt);
  EXPECT_EQ(ceiling(knowledge, config(1, 50000000)).fits, 300);
  EXPECT_EQ(ceiling(knowledge, config(1, 5000000)).fits, 300);
  EXPECT_EQ(ceiling(knowledge, config(1, 500000000)).fits, 0);
  EXPECT_GE(ceiling(knowledge, config(1, 5000000)).likely, 300);
}

TEST_F(KnowledgeTest, OtherFailuresTeachNothing) {
  Knowledge knowledge(study_);
  const Ceiling before = ceiling(knowledge, config(1));
  for (const Outcome outcome :
       {Outcome::failed, Outcome::timed_out, Outcome::invalid_config, Outcome::stopped, Outcome::lost}) {
    knowledge.learn(0, config(2), outcome, std::nullopt, std::nullopt);
  }
  EXPECT_EQ(ceiling(knowledge, config(1)).likely, before.likely);
  EXPECT_EQ(ceiling(knowledge, config(1)).possible, before.possible);
  EXPECT_FALSE(knowledge.find(config(2)));
}

TEST_F(KnowledgeTest, AFitOutweighsAnOutOfMemoryBelowIt) {
  Knowledge knowledge(study_);
  knowledge.learn(0, config(10), Outcome::out_of_memory, std::nullopt, std::nullopt);
  knowledge.learn(1, config(12), Outcome::completed, 1.0, std::nullopt);
  EXPECT_EQ(ceiling(knowledge, config(1)).fits, 12);
  EXPECT_GE(ceiling(knowledge, config(1)).likely, 12);
}

TEST_F(KnowledgeTest, RepeatedTrialsAreOneConfigurationWithTheirMean) {
  Knowledge knowledge(study_);
  knowledge.learn(4, config(2), Outcome::completed, 100.0, std::nullopt);
  knowledge.learn(5, config(3), Outcome::completed, 95.0, std::nullopt);
  EXPECT_EQ(knowledge.best()->trial, 4u);
  knowledge.learn(6, config(2), Outcome::completed, 80.0, std::nullopt);
  EXPECT_EQ(knowledge.find(config(2))->metric, 90.0);
  EXPECT_EQ(knowledge.best()->trial, 5u);
}

TEST_F(KnowledgeTest, ATieGoesToTheLowerId) {
  Knowledge knowledge(study_);
  knowledge.learn(9, config(2), Outcome::completed, 100.0, std::nullopt);
  knowledge.learn(3, config(3), Outcome::completed, 100.0, std::nullopt);
  EXPECT_EQ(knowledge.best()->trial, 3u);
}

TEST_F(KnowledgeTest, TheBestOfAMinimisedMetricIsTheSmallest) {
  study_.maximise = false;
  Knowledge knowledge(study_);
  knowledge.learn(0, config(2), Outcome::completed, 100.0, std::nullopt);
  knowledge.learn(1, config(3, 500000000, 2), Outcome::completed, 50.0, std::nullopt);
  EXPECT_EQ(knowledge.best()->trial, 1u);
  EXPECT_EQ(knowledge.best_of(1)->trial, 0u);
  EXPECT_FALSE(knowledge.best_of(3));
}

TEST_F(KnowledgeTest, BatchKeysThatFollowDoNotTellTwoConfigurationsApart) {
  Knowledge knowledge(study_);
  Json complete = config(2);
  complete["train_batch_size"] = 8;
  complete["gradient_accumulation_steps"] = 1;
  complete["autotuning"] = {{"enabled", true}};
  knowledge.learn(0, complete, Outcome::completed, 1.0, std::nullopt);
  EXPECT_TRUE(knowledge.find(config(2)));
  Json accumulated = config(2);
  accumulated["gradient_accumulation_steps"] = 4;
  EXPECT_FALSE(knowledge.find(accumulated));
}

TEST_F(KnowledgeTest, AStageThatRanOutAtTheSmallestMicroBatchIsHopeless) {
  Knowledge knowledge(study_);
  EXPECT_FALSE(knowledge.hopeless(knowledge.setup(config(1))));
  knowledge.learn(0, config(1), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_TRUE(knowledge.hopeless(knowledge.setup(config(1))));
  EXPECT_FALSE(knowledge.hopeless(knowledge.setup(config(1, 500000000, 2))));
}

TEST_F(KnowledgeTest, AnObservationThatIsMalformedIsAnError) {
  study_.observations = Json::array({{{"trial", 1}}});
  EXPECT_ANY_THROW(Knowledge{study_});
}

}  // namespace
}  // namespace dsat::search
