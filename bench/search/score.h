// The score of one seed's studies, and its summary over all seeds.
// Units: percent, virtual seconds; decision_ms is real time. Threading: pure functions. Errors: damaged JSON throws.
#ifndef DSAT_BENCH_SEARCH_SCORE_H_
#define DSAT_BENCH_SEARCH_SCORE_H_

#include <map>
#include <vector>

#include "search/study_run.h"

namespace dsat::bench {

// The score of one seed. Numbers of trials include the profile's.
struct SeedScore {
  std::map<int, double> handed;       // budget -> regret of the configuration handed back, %
  std::vector<double> so_far;         // regret of the best measured configuration after 1, 2, ... trials, %
  double tried = 0;                   // least true regret among the measured configurations of the longest study, %
  int trials = 0, out_of_memory = 0;  // of the longest study
  double wall_s = 0, profile_s = 0;   // of the longest study; virtual
  double full_s = 0;                  // duration of its search if all slots were always busy
  double busy_s = 0;                  // slot seconds of its search
  double decision_ms = 0;             // real time per trial, over all studies
};

Json to_json(const SeedScore& score);
SeedScore score_from_json(const Json& json);

// Adds a study of `budget` trials. The longest study has to come last.
void add_study(SeedScore& score, const Surface& surface, double optimum, const StudyRun& run, int budget,
               int concurrency);

// One searcher on one surface over all seeds. Percentages. trials_to: 0 if the median seed never gets there.
struct Summary {
  std::map<int, double> regret;  // budget -> median
  double tried = 0;              // median
  double out_of_memory = 0;      // mean share of trials
  std::map<double, double> trials_to;
  double within_1_at_20 = 0;  // share of seeds
  double wall_ratio = 0;      // wall time of the search / the same with full slots, mean
  double slot_use = 0;        // of the search, mean
  double wall_h = 0;          // of the whole study, mean
  double decision_ms = 0;
};

Summary summarise(const std::vector<SeedScore>& seeds, int concurrency);

double median(std::vector<double> values);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SCORE_H_
