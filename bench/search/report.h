// A contest's results as tables for people and as JSON for programs.
// Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_REPORT_H_
#define DSAT_BENCH_SEARCH_REPORT_H_

#include <string>
#include <vector>

#include "search/contest.h"

namespace dsat::bench {

// One table a family, then one line a scenario.
std::string table(const std::vector<ScenarioResult>& results, const ContestOptions& options);
Json report_json(const std::vector<ScenarioResult>& results, const ContestOptions& options);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_REPORT_H_
