// Runs every searcher on every scenario, seed and budget, and keeps the scores.
// Threading: one call at a time; it uses as many threads as jobs. Units: samples a second.
#ifndef DSAT_BENCH_SEARCH_CONTEST_H_
#define DSAT_BENCH_SEARCH_CONTEST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "search/score.h"

namespace dsat::bench {

struct ContestOptions {
  std::vector<std::string> searchers;  // plugins by name, asha-guided, optuna-tpe, optuna-random
  std::vector<Surface> surfaces;
  int seeds = 20;
  int first_seed = 1;
  int concurrency = 1;
  std::vector<int> budgets{8, 16, 20, 32, 64};
  std::filesystem::path plugins;  // the folder
  std::filesystem::path cache;    // empty: none
  std::string python = "/usr/bin/python3";
  std::string optuna_oom = "pruned";  // how an out-of-memory trial is reported to Optuna: pruned, failed or zero
  int jobs = 1;
  // Every trial of the longest study of each seed goes there, "-" is stdout; nothing is taken from the cache.
  std::string trace;
  Json searcher_options = Json::object();  // name -> options
};

struct SearcherResult {
  std::string searcher;
  Summary summary;
};
struct ScenarioResult {
  std::string name, family, about;
  bool reports_peak = true;  // its trials report their peak memory
  double optimum = 0;        // samples a second
  Json best_overrides;
  std::vector<SearcherResult> entries;  // in the order of the searchers
};

// Reports its progress on stderr. Throws dsat::Error when a plugin is missing or fails.
std::vector<ScenarioResult> run_contest(const ContestOptions& options);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_CONTEST_H_
