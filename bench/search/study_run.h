// A study of a surface in virtual time: the host's rules without processes, files or a journal.
//
// Purpose: thousands of studies in minutes. The plugins are the built libraries and the rules are those of the SDK's
//   test bench (limits, duplicates, all or nothing); on top come the profile, the clock, and the host's way of
//   reporting ended trials in the order of their ids within a window (docs/decisions/0001-ended-trials-in-order.md).
// Threading: one thread a study. Units: virtual seconds; decision_s is real time. Errors: dsat::Error.
#ifndef DSAT_BENCH_SEARCH_STUDY_RUN_H_
#define DSAT_BENCH_SEARCH_STUDY_RUN_H_

#include <functional>
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
  double throughput = 0;  // as measured; 0: none
  bool repeat = false;    // asked for as a repetition of an earlier one
  double start_s = 0, end_s = 0;
  std::string note;  // of the searcher
};

struct ProfileRun {
  Json profile;
  Json observations;
  std::vector<TrialLog> trials;
  double wall_s = 0;
  std::string error;  // empty: none; else no search can follow
};

// A configuration that a study hands back, and what led there.
struct StudyRun {
  std::vector<TrialLog> trials;  // in the order in which their ends were reported, the profile's first
  Json best;                     // the configuration that is handed back; null: none
  double profile_s = 0;          // wall time of the profile
  double wall_s = 0;             // of all
  double decision_s = 0;         // real time that the searcher took, the simulation included
  std::string error;             // empty: none
  std::string finish_reason;     // of the searcher
};

struct StudySetting {
  const Surface* surface = nullptr;
  const config::Space* space = nullptr;
  uint64_t seed = 0;
  int max_trials = 64;
  int concurrency = 1;
  int64_t profile_trials = Limits().profile_trials;
};

// The trials of a profiler plugin, one after another. A profile that a trial's failure ends is in `error`.
ProfileRun run_profile(const dsat_factory& profiler, const StudySetting& setting);

// A searcher plugin after that profile.
StudyRun run_searcher(const dsat_factory& searcher, const Json& options, const StudySetting& setting,
                      const ProfileRun& profile);

// A sampler with an ask-and-tell interface: ask() gives the overrides of the next trial, tell() reports the trial's
// end.
class AskTell {
 public:
  virtual ~AskTell() = default;
  virtual Json ask() = 0;
  virtual void tell(const Json& overrides, const testing::Answer& answer) = 0;
};
StudyRun run_ask_tell(AskTell& sampler, const StudySetting& setting, const ProfileRun& profile);

// The configuration with the best mean of its measurements among the first `count` trials, as the host chooses where
// the searcher names none; null: nothing completed.
Json best_measured(const std::vector<TrialLog>& trials, size_t count);

// What the trials would take with every slot always busy: each, in turn, on the slot that is free first.
double full_slots_s(const std::vector<TrialLog>& trials, size_t first, int concurrency);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STUDY_RUN_H_
