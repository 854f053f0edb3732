// The acquisition: chooses the next trial by what it adds to the best of the measured and the pending ones.
//
// Formula: joint_samples.h. Measured points are candidates too: a repeated measurement has a value if noise hides the
//   order of the best (the knowledge gradient of one point: Frazier, Powell and Dayanik 2009).
// Search: coordinate ascent over arms by expected improvement (Jones, Schonlau and Welch 1998) times the probability of
//   fitting, from the best of each stage. It scores each arm at its ceiling and at a few micro batches below it. The
//   best arms are sampled, the best of these at many micro batches.
// Files: acquisition.cc searches, choose.cc chooses, explore.cc explores, sensitivity.cc reports each axis's effect.
// Units: gains are in the objective, the logarithm of the metric. Threading: one thread. Errors: none.
// Determinism: random numbers follow from the seed and from the number of trials so far.
// Ownership: refers to the space and to the surrogate, which must live longer.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsat/random.h"
#include "zero_model/choice/joint_samples.h"
#include "zero_model/choice/surrogate.h"

namespace dsat::zero_model {

struct Proposal {
  Point point;
  bool repeat = false;
  double gain = 0;   // expected
  double value = 0;  // the gain minus the price of the risk
  double fit_probability = 1;
  double improvement = 0;     // of the point's mean over the incumbent's
  double deviation = 0;       // of the point's objective
  std::string exploration{};  // what is unknown at the point, if the trial explores; else empty
};

// Orders by value. A tie is decided by the points.
bool better(const Proposal& a, const Proposal& b);

void add_unique(std::vector<const Arm*>& arms, const Arm* arm);

// Accepted probabilities of running out of memory.
struct Risk {
  double usual = 0.05;   // for any proposal
  double daring = 0.05;  // the most that a proposal may have, at a price; at least `usual`
  double price = 0;      // the additional gain required of a trial that is certain to run out of memory

  // The gain minus the price of the risk beyond the usual one.
  double value_of(double gain, double fit_probability) const {
    return gain - price * std::max(0.0, 1 - fit_probability - usual);
  }
};

class Acquisition {
 public:
  Acquisition(ModelSpace& space, const Surrogate& surrogate, uint64_t seed)
      : space_(space), surrogate_(surrogate), seed_(seed) {}

  // The next trial beside the pending ones; nullopt: nothing is left to try. `draw` numbers the random choices.
  std::optional<Proposal> next(const std::vector<Point>& pending, const Risk& risk, uint64_t draw);

  // The predicted objective of the best measured point at the last next(); 0: none was measured.
  double expected_best() const { return incumbent_ ? incumbent_->prediction.mean : 0; }

  // After next(): the point with the largest possible gain if the models are wrong where nothing was measured. nullopt:
  // no point is worth a trial.
  std::optional<Proposal> explore();

  // After next(): a point in a stage without trials, if that stage may be the best.
  std::optional<Proposal> explore_new_stage();

  // After next(): a point in a stage that trials have seen at one end of its numeric values.
  std::optional<Proposal> explore_far_values();

  // After next(): a trial that all models call impossible, in a low stage, because model states may be smaller than any
  // formula says (weights of 4 bits). The first trial has the smallest micro batch, in the stage below the lowest
  // completed one. Later trials are larger, until one fails. nullopt: the stage has other trials, a trial runs in the
  // stage above, or the trial is not worth it.
  std::optional<Proposal> explore_denied_stage();

  // After next(): the largest multiple of 8 at or below the best micro batch. nullopt: a size near it was measured.
  std::optional<Proposal> explore_round_size();

  // After next(): before the search ends, each stage at its best guess of all values, and values that no trial like the
  // best ones had. nullopt: none of these may be the best.
  std::optional<Proposal> explore_before_end();

  // The loss of the best trial with another value of each choice: one line each, the most important first.
  std::vector<std::string> sensitivity();

 private:
  struct Visit {        // of an arm
    int64_t top = -1;   // the largest rank that fits at the daring risk; -1: none
    int64_t safe = -1;  // the same at the usual risk
    Proposal best;      // of the arm's proposals
    bool any = false;
  };

  std::vector<const Arm*> starts(uint64_t draw);
  const Arm* project(const Arm& from, const config::StageSpace& onto);
  const Arm* random_arm(const config::StageSpace& stage, Random& random);
  const std::vector<const Arm*>& neighbours(const Arm& arm);
  void coordinate_ascent(std::vector<const Arm*> front, int64_t hint);
  void visit(const std::vector<const Arm*>& arms, int64_t hint);
  bool growth_pays() const;
  // Is a smaller micro batch always better? A minimised time grows with it, unless the global batch is fixed.
  bool smaller_is_better() const { return !surrogate_.speed().maximises() && !space_.has_global_batch(); }
  int64_t last_rank() const;
  int64_t top_rank(const Arm& arm, int64_t hint, double risk) const;
  std::vector<int64_t> few_micro_batches(const Visit& visit) const;
  std::vector<int64_t> many_micro_batches(const Visit& visit) const;
  void find_tops(const Arm& arm, int64_t hint, Visit& visit) const;
  std::optional<Proposal> choose(uint64_t draw);
  void sample(uint64_t draw);
  std::vector<Point> candidates(uint64_t draw) const;
  std::map<int, std::vector<Point>> promising_points() const;
  std::vector<const Arm*> candidate_arms(uint64_t draw) const;
  std::vector<int64_t> micro_batch_ladder(const Arm& arm, const Visit& visit, bool fine) const;
  std::vector<Proposal> score(const std::vector<Point>& points) const;
  void consider_repeats(std::optional<Proposal>& best) const;
  static constexpr int64_t kTile = 8, kLeastMultiple = 16;
  // The largest multiple of kTile at or below `micro_batch`; nullopt: it is too small, or the space does not allow it.
  std::optional<int64_t> multiple_below(int64_t micro_batch) const;
  bool knows_multiple(double least) const;     // a multiple from `least` on was measured or runs
  bool is_excluded(const Point& point) const;  // tried, running, or above the bound of the train batch
  struct Coverage;
  // Deviations that the models do not include, because nothing was measured nearby.
  struct Doubt {
    double micro_batch = 0, stage = 0, axes = 0;
    const ModelAxis* axis = nullptr;  // an axis with an unmeasured value
  };
  Coverage coverage() const;
  const ModelAxis* unseen_axis(const std::vector<Point>& trials, const Arm& arm) const;
  const ModelAxis* untried_axis(const Arm& arm) const;
  void add_ceilings(const Arm& arm, std::vector<Point>& points) const;
  // The point of a stage with the best prediction.
  std::optional<Point> best_guess(const config::StageSpace& stage, const Coverage& seen);
  std::vector<Point> untried_points(const Coverage& seen);
  Doubt doubt(const Coverage& seen, const Point& point) const;
  struct StageTrials;
  std::map<int, StageTrials> stage_trials() const;  // ascending
  std::vector<int64_t> looks_of(const Arm& arm) const;
  std::vector<const Arm*> arms_to_look_at(const Coverage& seen);
  std::string why(const Doubt& doubt, const Point& point) const;
  const Arm* far_arm(const config::StageSpace& stage, const Arm& from);
  std::optional<Proposal> safest(uint64_t draw);

  ModelSpace& space_;
  const Surrogate& surrogate_;
  uint64_t seed_;
  Risk risk_;
  double exploration_risk_ = 0;
  std::vector<Point> pending_;
  std::optional<Surrogate::Incumbent> incumbent_;
  bool growth_pays_ = true;  // may a proposal be larger than the largest micro batch that completed?
  Point anchor_;             // the incumbent, or a pending point with a better prediction
  std::map<const Arm*, Visit> visits_;
  std::unordered_map<const Arm*, std::vector<const Arm*>> neighbours_;  // filled on first use
  std::unique_ptr<JointSamples> samples_;
  size_t sampled_ = 0;          // the surrogate's fit that they are drawn from
  std::set<int> explored_;      // stages that explore_new_stage() proposed
  std::set<int> far_;           // stages that explore_far_values() has considered
  std::map<int, int> guesses_;  // best guesses of each stage that explore_before_end() proposed
  int denied_ = -1;             // the last stage that explore_denied_stage() proposed; -1: none
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_
