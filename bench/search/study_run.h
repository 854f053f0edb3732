// A study of a surface in virtual time: the host's rules without processes, files or a journal.
//
// Purpose: thousands of studies in minutes. The plugins are the built libraries, and the SDK's test bench has the rules
//   (limits, duplicates, all or nothing). This file adds the profile, the clock, and the host's order of reported ends
//   within a window (docs/decisions/0001-ended-trials-in-order.md).
// Threading: one thread a study. Units: virtual seconds; decision_s is real time. Errors: dsat::Error.
#ifndef DSAT_BENCH_SEARCH_STUDY_RUN_H_
#define DSAT_BENCH_SEARCH_STUDY_RUN_H_

#include <string>
#include <vector>

#include "dsat/study.h"
#include "search/surfaces/measure.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

struct TrialLog {
  TrialId id = kNoTrial;
  Json config;
  Outcome outcome = Outcome::completed;
  double throughput = 0;  // the measurement; 0: none
  bool repeat = false;    // requested as a repetition
  double start_s = 0, end_s = 0;
  std::string note;  // the searcher's
};

struct ProfileRun {
  Json profile;
  Json observations;
  std::vector<TrialLog> trials;
  double wall_s = 0;
  std::string error;  // empty: none; otherwise no search follows
};

// The course and result of a study.
struct StudyRun {
  std::vector<TrialLog> trials;  // in the order of their reported ends, the profile's first
  Json best;                     // the configuration that is handed back; null: none
  double profile_s = 0;          // wall time of the profile
  double wall_s = 0;             // wall time of the study
  double decision_s = 0;         // real time of searcher and simulation
  std::string error;             // empty: none
  std::string finish_reason;     // the searcher's
};

struct StudySetting {
  const Surface* surface = nullptr;
  const config::Space* space = nullptr;
  uint64_t seed = 0;
  int max_trials = 64;
  int concurrency = 1;
  int64_t profile_trials = Limits().profile_trials;
};

// Runs a profiler plugin's trials, one after another. `error` has the failure of a profile.
ProfileRun run_profile(const dsat_factory& profiler, const StudySetting& setting);

// Runs a searcher plugin after that profile.
StudyRun run_searcher(const dsat_factory& searcher, const Json& options, const StudySetting& setting,
                      const ProfileRun& profile);

// A sampler with an ask-and-tell interface. ask() gives the overrides of the next trial, tell() reports its end.
class AskTell {
 public:
  virtual ~AskTell() = default;
  virtual Json ask() = 0;
  virtual void tell(const Json& overrides, const testing::Answer& answer) = 0;
};
StudyRun run_ask_tell(AskTell& sampler, const StudySetting& setting, const ProfileRun& profile);

// The configuration with the best mean among the first `count` trials, as the host chooses it if the searcher names
// none. null: no trial completed.
Json best_measured(const std::vector<TrialLog>& trials, size_t count);

// The duration of the trials if every slot were always busy: each trial in turn goes to the first free slot.
double full_slots_s(const std::vector<TrialLog>& trials, size_t first, int concurrency);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STUDY_RUN_H_
