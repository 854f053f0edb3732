// binary --exact: the search of Determined's dsat, step by step.
// The ceiling that the profile gives is read off the first trial, and the whole search is computed from it.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "plugins/surface.h"

namespace dsat::tests {
namespace {

testing::Bench bench(const Study& study, testing::AnswerFunction answer, bool exact = true) {
  return testing::Bench(testing::factory<Binary>(), "binary", study, std::move(answer), {{"exact", exact}});
}

testing::Answer fits(double throughput) {
  return testing::Answer::completed({{"throughput", throughput}}, std::nullopt);
}

// The micro batches of each configuration, in order.
std::map<std::string, std::vector<int64_t>> searches_of(const testing::Bench& bench) {
  std::map<std::string, std::vector<int64_t>> searches;
  for (const testing::Trial& trial : bench.asked()) {
    searches[trial.config["zero_optimization"].dump()].push_back(trial.micro_batch());
  }
  return searches;
}

// What Determined's search asks for in [1, high] where everything up to `largest` fits.
std::vector<int64_t> halves(int64_t high, int64_t largest) {
  std::vector<int64_t> asked;
  for (int64_t low = 1; low <= high;) {
    const int64_t middle = (low + high) / 2;
    asked.push_back(middle);
    (middle <= largest ? low : high) = middle <= largest ? middle + 1 : middle - 1;
  }
  return asked;
}

Study study_of(const Surface& surface) {
  Study study = make_study(surface, small_space({1}));
  study.limits.max_trials = 200;
  return study;
}

// The first trial of a range [1, high] is high / 2 rounded up, so high is one of two numbers.
int64_t high_of(const std::vector<int64_t>& search, int64_t largest) {
  for (const int64_t high : {2 * search.front() - 1, 2 * search.front()}) {
    if (halves(high, largest) == search) return high;
  }
  return -1;
}

TEST(ExactBinary, HalvesTheRangeThatTheProfileGave) {
  const Surface surface;
  for (const int64_t largest : {int64_t{0}, int64_t{1}, int64_t{37}, int64_t{100000}}) {
    auto run = bench(study_of(surface), [largest](const testing::Trial& trial) {
      return trial.micro_batch() <= largest ? fits(1.0) : testing::Answer::out_of_memory();
    });
    ASSERT_TRUE(run.run()) << run.error();
    for (const auto& [configuration, search] : searches_of(run)) {
      EXPECT_GT(high_of(search, largest), 0) << configuration << " with " << largest;
    }
  }
}

// What one configuration has shown changes nothing for another: their ranges are the profile's.
TEST(ExactBinary, EachConfigurationIsSearchedByItself) {
  const Surface surface;
  std::string first;
  auto run = bench(study_of(surface), [&first](const testing::Trial& trial) {
    const std::string configuration = trial.config["zero_optimization"].dump();
    if (first.empty()) first = configuration;
    return configuration == first ? testing::Answer::out_of_memory() : fits(1.0);
  });
  ASSERT_TRUE(run.run()) << run.error();
  const auto searches = searches_of(run);
  ASSERT_GT(searches.size(), 1u);
  for (const auto& [configuration, search] : searches) {
    EXPECT_GT(high_of(search, configuration == first ? 0 : 100000), 0) << configuration;
  }
}

TEST(ExactBinary, AFailureMovesTheUpperEndToo) {
  const Surface surface;
  auto run = bench(study_of(surface), [](const testing::Trial& trial) {
    return trial.micro_batch() <= 30 ? fits(1.0) : testing::Answer::failed("the data set has 30 samples");
  });
  ASSERT_TRUE(run.run()) << run.error();
  const auto searches = searches_of(run);
  ASSERT_FALSE(searches.empty());
  for (const auto& [configuration, search] : searches) {
    for (size_t i = 1; i < search.size(); ++i) {
      EXPECT_TRUE(search[i - 1] <= 30 ? search[i] > search[i - 1] : search[i] < search[i - 1]) << configuration;
    }
  }
}

TEST(ExactBinary, WithoutItTheSearchBeginsWhereItAlmostSurelyFits) {
  const Surface surface;
  const auto answer = [surface](const testing::Trial& trial) { return surface.answer(trial); };
  auto exact = bench(study_of(surface), answer), plain = bench(study_of(surface), answer, false);
  ASSERT_TRUE(exact.run()) << exact.error();
  ASSERT_TRUE(plain.run()) << plain.error();
  EXPECT_GE(plain.asked().front().micro_batch(), exact.asked().front().micro_batch());
  EXPECT_LT(plain.asked().size(), exact.asked().size());
}

}  // namespace
}  // namespace dsat::tests
