// All that a study has taught, and the models that were learned from it.
//
// Purpose: takes in trials as they end, fits the models again when asked for them, and answers what the planner asks:
//   what was measured, what is believed, what fits, what is likely to fail for other reasons.
// Threading: one thread. Determinism: the models follow from the trials in the order in which they ended.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_SURROGATE_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_SURROGATE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zero_model/memory/memory_mixture.h"
#include "zero_model/speed/speed_model.h"

namespace dsat::guided {

// One trial that has ended.
struct Ended {
  TrialId trial = kNoTrial;
  Point point;
  Outcome outcome = Outcome::completed;
  std::optional<double> metric, forward, backward, step, peak_bytes;
};

class Beliefs {
 public:
  Beliefs(const Study& study, Lattice& lattice);

  void learn(const Ended& ended);
  // Is there enough news to fit again? Always while a study is young, later each time that a twentieth more is known:
  // the cost of a trial stays flat.
  bool due() const;
  // Beyond this many trials a fit serves many decisions.
  bool young() const;
  // Fits what has not been fitted yet, if it is due, and counts `pending` in.
  void update(const std::vector<Point>& pending);
  // The measured points worth comparing: all while there are few, else the best by measurement at the last fit.
  const std::vector<Point>& leaders() const { return leaders_; }

  bool any_measured() const { return !measurements_.empty(); }
  size_t ended() const { return ended_.size(); }
  int64_t out_of_memory() const { return out_of_memory_; }
  const MemoryBelief& memory() const { return memory_; }
  const SpeedModel& speed() const { return speed_; }

  struct Measured {
    TrialId first = kNoTrial;
    int count = 0;     // of completed trials with the metric
    int failures = 0;  // of any other end but lost and stopped
    double sum_goodness = 0;
    bool out_of_memory = false;
  };
  const std::map<Point, Measured>& points() const { return points_; }
  const Measured* find(const Point& point) const;

  double probability_of_fitting(const Point& point) const;
  // The same of a point that no trial has measured.
  double expected_to_fit(const Point& point) const { return memory_.probability_of_fitting(point); }
  // That a trial of this arm ends well, memory apart.
  double probability_of_running(const Arm& arm) const;

  // The measured point believed best; nullptr: nothing was measured.
  struct Best {
    Point point;
    TrialId trial = kNoTrial;
    Belief belief;
  };
  std::optional<Best> best() const;

 private:
  std::vector<Measurement> window() const;
  std::vector<MemoryModel::Sample> memory_window() const;
  void find_leaders();

  Lattice& lattice_;
  MemoryBelief memory_;
  SpeedModel speed_;
  std::vector<Ended> ended_;
  std::vector<Measurement> measurements_;
  std::vector<MemoryModel::Sample> memory_samples_;
  std::map<Point, Measured> points_;
  std::map<int, std::pair<int, int>> stage_runs_;                 // good ends and bad ends
  std::vector<std::map<double, std::pair<int, int>>> knob_runs_;  // of each knob's coordinates
  int64_t out_of_memory_ = 0;
  std::vector<Point> leaders_;
  size_t fitted_ = 0;  // ended trials that the models know
  size_t tuned_ = 0;   // and those at the last choice of their residuals' scales
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_SURROGATE_H_
