// A contest's results as tables for people and as JSON for programs.
// Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_REPORT_H_
#define DSAT_BENCH_SEARCH_REPORT_H_

#include <string>
#include <vector>

#include "search/contest.h"

namespace dsat::bench {

// One table for each half of a family, then one line a scenario.
std::string table(const std::vector<ScenarioResult>& results, const ContestOptions& options);
// A contest at one concurrency.
struct ContestRun {
  int concurrency = 1;
  std::vector<ScenarioResult> results;
};

// One row for each half of a family, each concurrency and each searcher: regret after each budget, OOM share.
std::string summary_table(const std::vector<ContestRun>& runs, const ContestOptions& options);
Json report_json(const std::vector<ScenarioResult>& results, const ContestOptions& options);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_REPORT_H_
