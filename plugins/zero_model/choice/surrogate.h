// The surrogate: the results of a study's trials, and the models of speed and memory fitted to them.
//
// Purpose: learns from trials as they end, fits the models on request, and answers the acquisition: what was measured,
//   what is predicted, what fits, what is likely to fail for other reasons.
// Threading: one thread. Determinism: the models follow from the trials in the order of their ends.
// Ownership: refers to the space and its arms, which must live longer.
// Errors: the constructor throws dsat::Error or a JSON error for a malformed profile or observation.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_SURROGATE_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_SURROGATE_H_

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "cost/posterior/memory_mixture.h"
#include "zero_model/choice/refusals.h"
#include "zero_model/speed/speed_model.h"

namespace dsat::zero_model {

// The knowledge of memory before any trial: from the study's profile and its device.
MemoryPrior memory_prior(const Study& study);

// An ended trial. Numbers that are not positive and finite count as missing.
struct EndedTrial {
  TrialId trial = kNoTrial;
  Point point;
  Outcome outcome = Outcome::completed;
  std::optional<double> metric, peak_bytes;
  std::optional<double> peak_above_bytes{};  // of a trial out of memory
  int64_t allocator_retries = 0;
};

class Surrogate {
 public:
  // Learns the study's observations. A point outside the space becomes an arm of `space`.
  Surrogate(const Study& study, ModelSpace& space);

  void learn(EndedTrial ended);
  // Counts the point as tried without a result, for a trial that was lost twice.
  void leave(const Point& point) { points_[point]; }
  // Are there enough new trials for a fit? A young study fits after each trial, an old one when the trials have grown
  // by a twentieth, so that the cost of a trial stays flat.
  bool due() const;
  // Has the study fewer trials than the window? In an older study one fit serves many decisions.
  bool young() const;
  // Fits the models if that is due.
  void update();
  size_t fitted() const { return fitted_; }  // number of ended trials at the last fit
  // Fits the models to every ended trial, for the study's final result.
  void update_to_the_last();
  // The measured points worth comparing: all if there are few, else the best ones at the last fit.
  const std::vector<Point>& leaders() const { return leaders_; }

  bool any_measured() const { return !measurements_.empty(); }
  size_t ended() const { return ended_; }
  int64_t out_of_memory() const { return out_of_memory_; }
  const MemoryMixture& memory() const { return memory_; }
  const SpeedModel& speed() const { return speed_; }

  struct PointRecord {
    TrialId first = kNoTrial;  // the first trial with the metric
    int count = 0;             // completed trials with the metric
    double objective_sum = 0;
    double squares = 0;  // sum of the squared distances from the mean
    bool out_of_memory = false;
    double objective() const { return objective_sum / count; }
  };
  const std::map<Point, PointRecord>& points() const { return points_; }
  const PointRecord* find(const Point& point) const;

  // How often the stage has run out of memory, if it has completed no trial; else 0.
  int out_of_memory_only(int stage) const;
  // The smallest micro batch at which the stage has run out of memory; 0: none.
  int64_t least_out_of_memory(int stage) const;
  // The probability that the host does not refuse a trial of this arm.
  double probability_of_acceptance(const Arm& arm) const { return refusals_.probability_of_acceptance(arm); }
  double probability_of_fitting(const Point& point) const;
  // The prediction for a point without a measurement.
  double expected_to_fit(const Point& point) const { return memory_.probability_of_fitting(point); }
  // The smallest micro batch that failed for another reason than memory; 0: none.
  int64_t least_failed() const;
  // The largest micro batch that completed; 0: none.
  int64_t largest_completed() const { return largest_completed_; }
  // The probability that a trial of this point succeeds, if it fits.
  double probability_of_running(const Point& point) const;

  // The measured point with the best prediction; nullopt: there is no measurement.
  struct Incumbent {
    Point point;
    TrialId trial = kNoTrial;
    Prediction prediction;
  };
  std::optional<Incumbent> incumbent() const;

 private:
  double probability_of_ending_well(const Point& point) const;
  int values_that_never_ran(const Arm& arm) const;  // the stage counts, too
  double share_of_good(int good, const std::function<bool(const Arm&)>& shares) const;
  bool shares_a_suspect(const Point& failure) const;
  double beyond_ceiling(int64_t micro_batch) const;
  bool beyond_all(const Point& failure) const { return failure.micro_batch > largest_completed_; }

  std::vector<SpeedObservation> window() const;
  std::vector<MemoryObservation> memory_window() const;
  void fit();
  void find_leaders();

  MemoryMixture memory_;
  SpeedModel speed_;
  std::vector<SpeedObservation> measurements_;
  std::vector<MemoryObservation> memory_observations_;
  std::map<Point, PointRecord> points_;
  std::map<int, int> stage_runs_;                 // number of trials that ran
  std::map<int, int> out_of_memory_only_;         // number of trials that ran out; -1: one has completed
  std::map<int, int64_t> least_out_of_memory_;    // micro batch
  std::vector<std::map<double, int>> axis_runs_;  // the same by axis and coordinate
  std::vector<Point> failures_;                   // failed for other reasons than memory
  Refusals refusals_;
  int64_t largest_completed_ = 0;  // micro batch
  int64_t out_of_memory_ = 0;
  std::vector<Point> leaders_;
  size_t ended_ = 0;
  size_t fitted_ = 0;
  size_t tuned_ = 0;  // the same at the last choice of the residuals' scales
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_SURROGATE_H_
