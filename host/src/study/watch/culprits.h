// The culprits of a study: a ZeRO stage, a value of an axis, or a pair of these with which trials always fail.
//
// Purpose: a search learns little from such failures, so no trial is to be lost to a culprit more often than needed.
//   Failures are alike if their texts are equal but for their numbers. The suspects of alike failures are what most of
//   them have in common and no trial has trained with: stage and values, or pairs of both if each part has trained.
//   A request is refused if it would probably fail, given its suspects: a culprit that is found after two failures is
//   refused from then on, whatever happened between. If several are suspected, requests with few of them may run,
//   because their ends tell which one it is. Failures only above or only below all micro batches that trained may come
//   from the micro batch, so they give no suspects.
//   Nothing here is final: a trial that trains clears its stage and values, and a failure without a suspect shifts the
//   suspicion.
// Threading: control thread. Errors: none. Cost: each trial costs the same, however many there are.
#ifndef DSAT_HOST_STUDY_WATCH_CULPRITS_H_
#define DSAT_HOST_STUDY_WATCH_CULPRITS_H_

#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dsat/config/space.h"
#include "record/trial.h"

namespace dsat::host {

// May a trial of this phase be refused for a culprit? What is measured again after the search has trained.
inline bool may_be_refused(Phase phase) { return phase <= Phase::searcher; }

class Culprits {
 public:
  // Counts a trial whose strategy has learned of its end. Call it in the order in which strategies learn.
  void add(const Trial& trial, const config::Space& space);
  // Another searcher begins: what failed before may be tried again.
  void forget_failures();
  // The script or the machine may have been mended: each culprit may fail once more before it is refused again.
  void give_new_chance();

  // Why a trial of this configuration is not run; empty: it may run.
  std::string why_refused(const Json& config, const config::Space& space) const;
  // Are there suspects for this failed trial?
  bool suspects_of(const Trial& failed) const;
  // A line for each culprit that is certain: nothing else is suspected.
  std::vector<std::string> found() const;
  // The lines of found() that are new since the last call.
  std::vector<std::string> take_news();
  // Is every configuration of the space refused? That holds if each stage is: by itself, or with each value of an axis.
  bool refuse_all(const config::Space& space) const;
  // Has every stage failed as this trial did, without a value that all these failures share, while nothing has trained?
  // Then the script is the cause.
  bool blame_script(const Trial& failed, const config::Space& space) const;

 private:
  using Feature = int;                        // an index into names_
  using Cause = std::pair<Feature, Feature>;  // a pair, or one feature twice
  struct Failure {
    uint64_t trial = 0;
    int64_t micro_batch = 0;
    std::vector<Feature> features;  // ascending
    std::string reason;
  };
  // The newest failures of a text that are kept.
  static constexpr size_t kMostKept = 32;
  using Shared = std::bitset<kMostKept>;  // failures of a list, by their places
  struct ByNumber {
    bool operator()(const Shared& a, const Shared& b) const { return a.to_ulong() < b.to_ulong(); }
  };
  using Causes = std::map<Shared, std::set<Cause>, ByNumber>;  // causes of the same failures
  // The causes that all failures of one text share.
  struct Suspicion {
    std::set<Cause> suspects;
    std::vector<Failure> failures;
    size_t most = 0;                     // failures that share a suspect
    std::optional<int64_t> from_size{};  // there are no suspects: micro batches from this one on fail
  };

  bool learn_training(const Trial& trial, const std::vector<Feature>& features);
  std::vector<Feature> features_of(const Json& config, const config::Space& space, bool trained);
  std::vector<Feature> known_features(const std::vector<std::string>& texts) const;
  void suspect_anew(const std::string& text);
  std::vector<Suspicion> suspicions_of(std::vector<Failure> failures) const;
  std::optional<Suspicion> size_of(const std::vector<Failure>& failures) const;
  Causes most_common_causes(const std::vector<Failure>& failures) const;
  Shared suspect(const Causes& causes, const std::vector<Failure>& failures, std::vector<Suspicion>& suspicions) const;
  bool may_be_of_size(const Failure& failure) const;
  bool is_stage(const Cause& cause) const;
  bool would_fail(const Suspicion& suspicion, const std::vector<Feature>& features) const;
  bool refuses(const std::vector<std::string>& texts) const;
  double weight(const Cause& cause) const;
  std::string text_of(const Cause& cause) const;
  std::string describe(const Suspicion& suspicion) const;

  struct Name {
    std::string text;   // "zero_optimization.stage 2"
    size_t values = 1;  // of its axis
    bool is_stage = false;
  };
  std::map<std::string, Feature> features_;  // by text
  std::vector<Name> names_;
  std::set<Cause> trained_;
  std::set<int64_t> trained_sizes_;                    // micro batches
  int64_t smallest_ = 1;                               // of the space
  std::map<std::string, std::vector<Failure>> alike_;  // by text, the newest last
  std::map<std::string, std::vector<Suspicion>> suspicions_;
  std::set<std::string> reported_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_CULPRITS_H_
