// A whole study of the host on a surface, phases after the search included: what a user is handed back.
//
// Purpose: bench_search runs searchers alone, by the rules of the SDK's test bench. Here the host itself runs, so its
//   baseline, its simplification and its finals count, and are paid for from the same budget.
// Threading: one study at a time a surface. Units: virtual seconds, bytes. Errors: dsat::Error.
#ifndef DSAT_BENCH_SURVIVAL_WHOLE_STUDY_H_
#define DSAT_BENCH_SURVIVAL_WHOLE_STUDY_H_

#include <functional>
#include <string>
#include <vector>

#include "dsat/host/study.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

// The peak of a run of so many steps, as a share of the truth's; `run` seeds what differs from run to run.
using PeakShare = std::function<double(const SurfacePoint& point, int steps, uint64_t run)>;

struct WholeStudySetting {
  std::string searcher = "guided";
  Json searcher_options = Json::object();
  int max_trials = 24;
  uint64_t seed = 1;
  double memory_margin = -1;  // negative: the host's default
  int verify_steps = 0;
  bool keeps_all_changes = false;
  PeakShare peak_share;  // empty: the truth
};

struct WholeStudy {
  Json best;              // the configuration that is handed back; null: none
  double throughput = 0;  // its true one; 0: nothing was handed back
  int keys_changed = 0;   // in which it differs from the user's own; the global batch follows from the others
  int trials = 0, out_of_memory = 0;
};

constexpr int kTrialSteps = 6;  // of a trial, without --verify

WholeStudy run_whole_study(const Surface& surface, const WholeStudySetting& setting);

// The middle of sorted values, the lower of two.
int lower_median(std::vector<int> values);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SURVIVAL_WHOLE_STUDY_H_
