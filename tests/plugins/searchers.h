// The searchers under one roof, for tests of what holds for each of them.
#ifndef DSAT_TESTS_PLUGINS_SEARCHERS_H_
#define DSAT_TESTS_PLUGINS_SEARCHERS_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "asha/asha.h"
#include "binary/binary.h"
#include "grid/grid.h"
#include "random/random.h"
#include "surface.h"

namespace dsat::tests {

inline const dsat_factory& factory_of(const std::string& name) {
  if (name == "asha") return testing::factory<Asha>();
  if (name == "grid") return testing::factory<Grid>();
  return name == "binary" ? testing::factory<Binary>() : testing::factory<RandomSearch>();
}

class Searchers : public ::testing::TestWithParam<const char*> {
 protected:
  testing::Bench bench(Study study, testing::AnswerFunction answer, const Json& options = Json::object()) const {
    return testing::Bench(factory_of(GetParam()), GetParam(), std::move(study), std::move(answer), options);
  }
  testing::Bench bench(const Surface& surface, Study study) const {
    return bench(std::move(study), [surface](const testing::Trial& trial) { return surface.answer(trial); });
  }
};

inline std::string searcher_name(const ::testing::TestParamInfo<const char*>& info) { return info.param; }
// Grid among them where it is about what any searcher must do, and not about how well it searches.
#define DSAT_FOR_EACH_SEARCHER_AND_GRID(suite) \
  INSTANTIATE_TEST_SUITE_P(Each, suite, ::testing::Values("asha", "binary", "random", "grid"), searcher_name)
#define DSAT_FOR_EACH_SEARCHER(suite) \
  INSTANTIATE_TEST_SUITE_P(Each, suite, ::testing::Values("asha", "binary", "random"), searcher_name)

inline int count_outcome(const testing::Bench& bench, Outcome outcome) {
  int count = 0;
  for (const testing::Ended& ended : bench.ended()) count += ended.answer.outcome == outcome ? 1 : 0;
  return count;
}

inline int count_duplicates(const testing::Bench& bench) {
  int count = 0;
  for (const testing::Trial& trial : bench.asked()) count += trial.duplicate ? 1 : 0;
  return count;
}

inline double metric_of(const testing::Bench& bench, TrialId trial, const std::string& metric) {
  for (const testing::Ended& ended : bench.ended()) {
    if (ended.trial.id == trial && ended.answer.metrics.count(metric) != 0) return ended.answer.metrics.at(metric);
  }
  return -1;
}

}  // namespace dsat::tests

#endif  // DSAT_TESTS_PLUGINS_SEARCHERS_H_
