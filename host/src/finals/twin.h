// Before a configuration is handed back, its keys train at the user's own batch and seed: its twin.
//
// Purpose: a stage, a bucket, an overlap or an offload does not change what is learned. At the own batch the losses and
//   gradient norms of both must be the same step by step (agreement.h). A twin that differs ends as `diverged`, which
//   the study decides when the trial ends (study/watch/guard.h); then the next best follows with a twin of its own.
// Start event: {"own": {"trial", "overrides", "runs"}, "candidates": [Candidate], "budget", "reason"}, the best first.
//   Candidate: {"trial", "keys", "overrides", "smaller"}: `keys` tells twins apart; `overrides` are its own keys at the
//   user's batch, null where it has no twin (it is the user's own, or cannot be compared); `smaller` the same at a
//   smaller micro batch with more accumulation, for keys to which the own micro batch is too large, or null.
// Names the first candidate whose twin agrees, or that has none; the user's own if the budget ends after a divergence,
//   or if kMostFinalists have diverged. A twin that fails otherwise says nothing against its candidate.
#ifndef DSAT_HOST_FINALS_TWIN_H_
#define DSAT_HOST_FINALS_TWIN_H_

#include <cstdint>
#include <set>
#include <string>

#include "finals/host_strategy.h"

namespace dsat::host {

// The band is learned from this many runs of the user's own configuration. One that is missing is made up for first: a
// script may be random by design, and then nothing speaks against anybody.
inline constexpr int kRunsOfOwn = 2;

class Twin : public HostStrategy {
 protected:
  void start(const Json& brief) override;
  void trial_ended(const Ended& ended) override;

 private:
  const Json& candidate() const { return brief_.at("candidates").at(next_ - 1); }
  void ask_next();
  bool ask_for(const char* overrides, const std::string& note);
  void name(const Json& one);

  Json brief_;
  int budget_ = 0;
  size_t next_ = 0;   // candidate after the present one
  size_t asked_ = 0;  // candidates that had a twin
  std::optional<uint64_t> own_, twin_;
  bool is_smaller_ = false;      // the present twin has the smaller micro batch
  std::set<std::string> wrong_;  // keys whose twin has diverged
};

// The keys of a configuration without its batch sizes: what its twin is about.
std::string keys_of(Json config);

// The keys of a candidate at the own batch, and at the largest smaller micro batch that divides the own and is at most
// `fits`; null if there is none. `own`: the user's own configuration, complete.
Json at_own_batch(Json overrides, const Json& own);
Json at_smaller_batch(Json overrides, const Json& own, int64_t fits);

// A configuration with these keys is not handed back: its twin has diverged.
bool is_wrong_twin(const Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_TWIN_H_
