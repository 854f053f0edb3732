// The effects of a configuration's choices: the metric as a function of stage, micro batch and values, learned from all
// trials of a study.
//
// Purpose: tells the keys that made the best configuration fast from those that only happen to be in it, for every
//   searcher. A Gaussian process over the logarithm of the metric: a part along the micro batch, one for the stage, one
//   for each key, and one for what all keys do together. Values that are close, trials at like micro batches and trials
//   of one stage tell more about each other. The evidence chooses how large the parts are (Rasmussen and Williams,
//   Gaussian Processes for Machine Learning, chapters 2 and 5).
// Threading: a plain value. Errors: none. Units: logarithms of the metric, larger is better.
#ifndef DSAT_HOST_FINALS_EFFECTS_H_
#define DSAT_HOST_FINALS_EFFECTS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::host {

// The choices of one configuration. A key that is absent has DeepSpeed's default.
struct Choices {
  int stage = 0;
  double log_micro_batch = 0;
  std::map<std::string, Json> values;  // of the axes of its stage
};
Choices choices_of(const Json& config, const config::Space& space);

class Effects {
 public:
  struct Measurement {
    Choices choices;
    double value = 0;
  };
  // `noise_variance`: of one measurement.
  Effects(std::vector<Measurement> measured, double noise_variance);
  Effects(Effects&&) noexcept;
  ~Effects();

  // How much lower the value of `to` is expected than that of `from`.
  struct Loss {
    double mean = 0, deviation = 0;
  };
  Loss loss(const Choices& from, const Choices& to) const;

 private:
  struct Fit;
  std::unique_ptr<const Fit> fit_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_EFFECTS_H_
