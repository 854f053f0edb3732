// The score of one seed's studies, and its summary over all seeds.
// Units: percent, virtual seconds; decision_ms is real time. Threading: pure functions. Errors: damaged JSON throws.
#ifndef DSAT_BENCH_SEARCH_SCORE_H_
#define DSAT_BENCH_SEARCH_SCORE_H_

#include <map>
#include <string>
#include <vector>

#include "search/study_run.h"

namespace dsat::bench {

// One seed. Trials count those of the profile.
struct SeedScore {
  std::map<int, double> handed;       // budget -> regret of the configuration handed back, %
  std::vector<double> so_far;         // regret of the best measured configuration after so many trials (from 1), %
  double tried = 0;                   // least true regret of all configurations that the longest study measured, %
  int trials = 0, out_of_memory = 0;  // of the longest study
  double wall_s = 0, profile_s = 0;   // its times; virtual
  double full_s = 0;                  // its search with slots kept always full
  double busy_s = 0;                  // slot seconds of its search
  double decision_ms = 0;             // real time a trial of all studies
};

Json to_json(const SeedScore& score);
SeedScore score_from_json(const Json& json);

// Adds a study of `budget` trials; the longest one comes last.
void add_study(SeedScore& score, const Surface& surface, double optimum, const StudyRun& run, int budget,
               int concurrency);

// All seeds of one searcher on one surface. Percentages; trials_to is 0 where the median seed never gets there.
struct Summary {
  std::map<int, double> regret;  // budget -> median
  double tried = 0;              // median
  double out_of_memory = 0;      // mean share of trials
  std::map<double, double> trials_to;
  double within_1_at_20 = 0;  // share of seeds
  double wall_ratio = 0;      // the search's wall time against full slots, mean
  double slot_use = 0;        // of the search, mean
  double wall_h = 0;          // the whole study, mean
  double decision_ms = 0;
};

Summary summarise(const std::vector<SeedScore>& seeds, int concurrency);

double median(std::vector<double> values);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SCORE_H_
