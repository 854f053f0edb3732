// A searcher that was saved and restored, at any point, goes on as if nothing had happened.
// Each test runs with every searcher that LineageSearch is the base of.
#include <gmock/gmock.h>

#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

class SearcherRestore : public Searchers {};
DSAT_FOR_EACH_SEARCHER_AND_GRID(SearcherRestore);

TEST_P(SearcherRestore, GoesOnAsIfNothingHadHappened) {
  const Surface surface;
  for (const int64_t concurrency : {1, 8}) {
    config::Space space = small_space({1, 2, 3});
    for (config::StageSpace& stage : space.stages) {
      for (int i = 0; i < 12; ++i) stage.axes[0].values.push_back(1000000 + i);
    }
    Study study = make_study(surface, space);
    study.limits.max_concurrent_trials = concurrency;
    study.limits.max_trials = 40;
    auto whole = this->bench(surface, study);
    ASSERT_TRUE(whole.run()) << whole.error();
    for (const int steps : {0, 1, 7, 20, 25}) {
      auto before = this->bench(surface, study);
      before.start();
      for (int i = 0; i < steps; ++i) ASSERT_TRUE(before.step());
      auto after = this->bench(surface, study);
      after.restore_from(before);
      while (after.step()) {
      }
      EXPECT_EQ(after.error(), "");
      EXPECT_EQ(after.ops(), whole.ops()) << steps << " steps, " << concurrency << " at a time";
    }
  }
}

TEST_P(SearcherRestore, ACeilingThatIsNoMemoryIsRememberedToo) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2, 3}));
  const testing::AnswerFunction answer = [surface](const testing::Trial& trial) {
    return trial.micro_batch() <= 23 ? surface.answer(trial) : testing::Answer::failed("too few samples");
  };
  auto whole = this->bench(study, answer);
  ASSERT_TRUE(whole.run()) << whole.error();
  for (const int steps : {2, 5, 9}) {
    auto before = this->bench(study, answer);
    before.start();
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(before.step());
    auto after = this->bench(study, answer);
    after.restore_from(before);
    while (after.step()) {
    }
    EXPECT_EQ(after.ops(), whole.ops()) << steps << " steps";
  }
}

TEST_P(SearcherRestore, AFailureIsRememberedToo) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  const auto answer = [&](const testing::Trial& trial) {
    if (trial.stage() == 2) return testing::Answer::failed("no");
    return surface.answer(trial);
  };
  auto whole = this->bench(study, answer);
  ASSERT_TRUE(whole.run());
  auto before = this->bench(study, answer);
  before.start();
  for (int i = 0; i < 8; ++i) before.step();
  auto after = this->bench(study, answer);
  after.restore_from(before);
  while (after.step()) {
  }
  EXPECT_EQ(after.ops(), whole.ops());
}

TEST_P(SearcherRestore, SavingChangesNothing) {
  const Surface surface;
  auto bench = this->bench(surface, make_study(surface, small_space({1, 2, 3})));
  bench.start();
  for (int i = 0; i < 5; ++i) bench.step();
  const std::string state = bench.save();
  EXPECT_FALSE(state.empty());
  EXPECT_EQ(state, bench.save());
}

TEST_P(SearcherRestore, ADamagedStateIsAnError) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  const std::string name = GetParam();
  const dsat_factory& factory = factory_of(name);
  for (const std::string damaged : {"", "{", "{}", "[]", "{\"lineages\": 3}"}) {
    auto bench = this->bench(surface, study);
    dsat_strategy* strategy = nullptr;
    Json options = Json::object();
    for (const Json& option : Json::parse(factory.descriptor(0)->options_json)) {
      options[option["name"].get<std::string>()] = option["default"];
    }
    const std::string values = options.dump();
    ASSERT_EQ(factory.create(factory.descriptor(0)->id, &bench.host(), {values.data(), values.size()}, &strategy),
              DSAT_OK);
    const std::string json = study.to_json().dump();
    const dsat_study raw{sizeof(dsat_study), 0, 42, {json.data(), json.size()}};
    EXPECT_NE(strategy->restore(strategy, &raw, {damaged.data(), damaged.size()}), DSAT_OK) << damaged;
    strategy->destroy(strategy);
  }
}

}  // namespace
}  // namespace dsat::tests
