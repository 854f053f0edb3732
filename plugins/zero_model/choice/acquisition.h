// The acquisition: chooses the next trial by expected improvement times the probability of fitting.
//
// Formula: the gain of a trial is how much the best posterior mean is expected to rise by it. That is the knowledge
//   gradient of one point: expected improvement (Jones, Schonlau and Welch 1998), with the noise of a measurement
//   counted (Frazier, Powell and Dayanik 2009). Measured points are candidates too: measuring one again is worth
//   something where noise hides the order of the best.
// Search: coordinate ascent over arms, from the best of each stage. It scores each arm at its ceiling, at round micro
//   batches below it, and at neighbours of the best micro batch.
// Files: acquisition.cc chooses one trial, choose_batch.cc one by joint draws, explore.cc looks where no trial
//   was, sensitivity.cc reports what each axis is worth.
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
#include <utility>
#include <vector>

#include "dsat/random.h"
#include "zero_model/choice/joint_samples.h"
#include "zero_model/choice/surrogate.h"

namespace dsat::zero_model {

struct Proposal {
  Point point;
  bool repeat = false;
  double gain = 0;   // expected
  double value = 0;  // the gain less the price of the risk
  double fit_probability = 1;
  double improvement = 0;     // of the point's mean over the incumbent's
  double deviation = 0;       // of the point's objective
  std::string exploration{};  // what is unknown there, where the trial is to explore; else empty
};

// Orders by value; a tie goes by what the points are.
bool better(const Proposal& a, const Proposal& b);

// Highest probabilities of running out of memory: of any proposal, and of one that promises far more than all others.
struct Risk {
  double usual = 0.05;
  double daring = 0.05;  // at least the usual
  double price = 0;      // further gain that a trial must promise if it is certain to run out of memory

  // What is left of a gain when the risk beyond the usual one is paid for.
  double value_of(double gain, double fit_probability) const {
    return gain - price * std::max(0.0, 1 - fit_probability - usual);
  }
};

class Acquisition {
 public:
  // `concurrent`: other trials run while a proposal is tried.
  Acquisition(ModelSpace& space, const Surrogate& surrogate, uint64_t seed, bool concurrent)
      : space_(space), surrogate_(surrogate), seed_(seed), concurrent_(concurrent) {}

  // Does next() choose by joint draws? They hold the pending trials' ends: the surrogate must not count these in. Few
  // trials leave constants that are far from normal, and draws of them promise no more than the physics allows.
  bool by_draws() const { return surrogate_.young() && (concurrent_ || surrogate_.ended() < kFewTrials); }

  // The next trial, beside those that are pending; nullopt: nothing is left to try. `draw` numbers the random choices.
  std::optional<Proposal> next(const std::vector<Point>& pending, const Risk& risk, uint64_t draw);

  // The proposals of the last next(), best first: they serve further decisions where each cannot have a search of its
  // own.
  std::vector<Proposal> ranked() const;

  // After next(): the best point by what it may gain if the models are wrong where nothing was measured; nullopt: no
  // point is worth a trial.
  std::optional<Proposal> explore();

  // After next(): a point in a stage that no trial has touched, if that stage may be the best for all that is known.
  std::optional<Proposal> explore_new_stage();

  // After next(): a look at what all models deny, in the lowest stages. Model states may be smaller than any formula
  // says (weights of 4 bits). First the smallest micro batch of the stage below all in which a trial completed, and as
  // long as nothing fails there larger ones. nullopt: trials have touched that stage, one runs in the stage above it,
  // or no look is worth it.
  std::optional<Proposal> explore_denied_stage();

  // After next(): the largest multiple of 8 that is not above the best micro batch. nullopt: one near it was measured.
  std::optional<Proposal> explore_round_size();

  // What another value of each choice would cost the best trial: a line each, the one that matters most first.
  std::vector<std::string> sensitivity();

 private:
  static constexpr size_t kFewTrials = 9;  // that have ended

  struct Visit {        // of an arm
    int64_t top = -1;   // the largest rank that fits at the daring risk; -1: none
    int64_t safe = -1;  // the same at the usual risk
    Proposal best;      // of all
    std::optional<Proposal> best_safe;
    bool any = false;
  };

  std::vector<const Arm*> starts(uint64_t draw);
  const Arm* project(const Arm& from, const config::StageSpace& onto);
  const Arm* random_arm(const config::StageSpace& stage, Random& random);
  const std::vector<const Arm*>& neighbours(const Arm& arm);
  void coordinate_ascent(std::vector<const Arm*> front, int64_t hint);
  void visit(const std::vector<const Arm*>& arms, bool thorough, int64_t hint);
  bool growth_pays() const;
  // Is a smaller micro batch better by construction? A minimised time grows with it, if the global batch is not fixed.
  bool smaller_is_better() const { return !surrogate_.speed().maximises() && !space_.has_global_batch(); }
  int64_t last_rank() const;
  int64_t top_rank(const Arm& arm, int64_t hint, double risk) const;
  std::vector<int64_t> micro_batches(const Arm& arm, const Visit& visit, bool thorough) const;
  void find_tops(const Arm& arm, int64_t hint, Visit& visit) const;
  std::vector<const Arm*> finalists() const;
  std::optional<Proposal> best_visited() const;
  std::optional<Proposal> choose_alone(uint64_t draw);
  std::optional<Proposal> choose_in_batch(uint64_t draw);
  void sample_batch(uint64_t draw);
  std::vector<Point> batch_candidates(uint64_t draw) const;
  std::map<int, std::vector<Point>> promising_points() const;
  std::vector<const Arm*> batch_arms(uint64_t draw) const;
  std::vector<int64_t> micro_batch_ladder(const Arm& arm, const Visit& visit, bool fine) const;
  std::vector<Proposal> score(const std::vector<Point>& points) const;
  void expect_pending();
  void consider_repeats(std::optional<Proposal>& best) const;
  static constexpr int64_t kTile = 8, kLeastMultiple = 16;
  // The largest multiple of kTile that is no larger; nullopt: below kLeastMultiple, or the space does not allow it.
  std::optional<int64_t> multiple_below(int64_t micro_batch) const;
  bool knows_multiple(double least) const;  // one that was measured or runs
  void round_down(Proposal& proposal) const;
  void save_memory(Proposal& proposal);
  bool is_excluded(const Point& point) const;  // it was tried or runs, or is above the bound of the train batch
  struct Coverage;
  // Deviations of a prediction that the models do not know of, by where nothing was measured.
  struct Doubt {
    double micro_batch = 0, stage = 0, axes = 0;
    const ModelAxis* axis = nullptr;  // one whose value is new
  };
  Coverage coverage() const;
  Doubt doubt(const Coverage& seen, const Point& point) const;
  struct StageTrials;
  std::map<int, StageTrials> stage_trials() const;  // ascending
  std::vector<int64_t> looks_of(const Arm& arm) const;
  std::vector<const Arm*> arms_to_look_at(const Coverage& seen);
  std::string why(const Doubt& doubt, const Point& point) const;
  std::optional<Proposal> safest(uint64_t draw);

  ModelSpace& space_;
  const Surrogate& surrogate_;
  uint64_t seed_;
  bool concurrent_;
  Risk risk_;
  double exploration_risk_ = 0;
  std::vector<Point> pending_;
  std::optional<Surrogate::Incumbent> incumbent_;
  bool growth_pays_ = true;  // may a proposal lie beyond the largest micro batch that completed?
  Point anchor_;             // the incumbent, or a pending point that is predicted better
  double pending_best_ = 0;  // objective of the best pending point
  double pending_fits_ = 0;  // and its probability of fitting
  std::map<const Arm*, Visit> visits_;
  std::unordered_map<const Arm*, std::vector<const Arm*>> neighbours_;  // made when first asked for
  std::vector<Proposal> scored_;
  std::unique_ptr<JointSamples> batch_samples_;
  size_t batch_samples_ended_ = 0;  // trials that had ended when batch_samples_ was made
  std::set<int> explored_;          // stages that explore_new_stage() proposed
  int denied_ = -1;                 // the stage that explore_denied_stage() proposed last; -1: none
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_ACQUISITION_H_
