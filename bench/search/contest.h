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
  std::vector<std::string> searchers;  // plugins by name, optuna-tpe, optuna-random
  std::vector<Surface> surfaces;
  int seeds = 20;
  int first_seed = 1;
  int concurrency = 1;
  std::vector<int> budgets{8, 16, 20, 32, 64};
  std::filesystem::path plugins;  // folder
  std::filesystem::path cache;    // folder; empty: no cache
  std::string python = "/usr/bin/python3";
  std::string optuna_oom = "pruned";  // report of an out-of-memory trial to Optuna: pruned, failed or zero
  int jobs = 1;
  // File for every trial of the longest study of each seed; "-" is stdout. With a trace the cache is not used.
  std::string trace;
  Json searcher_options = Json::object();  // name -> options
};

struct SearcherResult {
  std::string searcher;
  Summary summary;
};
struct ScenarioResult {
  std::string name, family, about;
  bool reports_peak = true;  // trials report their peak memory
  double optimum = 0;        // samples a second
  Json best_overrides;
  std::vector<SearcherResult> entries;  // in the order of ContestOptions::searchers
};

// Reports its progress on stderr. Throws dsat::Error if a plugin is missing or fails.
std::vector<ScenarioResult> run_contest(const ContestOptions& options);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_CONTEST_H_
