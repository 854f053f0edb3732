// Predicts whether a point fits the device, under one hypothesis about memory.
//
// The latent variable is a point's shortage: its peak less what the device gives. Its prior mean and covariance come
//   from the hypothesis (memory_hypotheses.h), most often the formula for model states and buffers (dsat::cost). That
//   formula has unknown constants: fixed bytes, bytes a sample, scales of the buffers, an offset and a slope of each
//   stage, the usable share of the device. A residual (kernel.h) covers the rest.
// Observations: a measured peak is an equation. A trial that ran out of memory, or that fitted and reported no peak, is
//   a censored observation with a probit likelihood (censored.h). So is what an out-of-memory message shows of the
//   peak, and an allocator that had to retry: the peak of such a trial was close to what the device gives.
// Units: bytes; inside, shares of the device memory. Shapes: points x draws. Threading: one thread. Errors: none.
// Ownership: refers to the axes and to the arms of the trials, which must live longer.
#ifndef DSAT_COST_POSTERIOR_MEMORY_MODEL_H_
#define DSAT_COST_POSTERIOR_MEMORY_MODEL_H_

#include <Eigen/Dense>
#include <optional>
#include <vector>

#include "cost/posterior/censored.h"
#include "cost/posterior/joint_normal.h"
#include "cost/posterior/kernel.h"
#include "cost/posterior/memory_hypotheses.h"
#include "dsat/cost/memory.h"

namespace dsat::cost {

struct MemoryPrior {
  std::optional<double> device_bytes;
  double activation_bytes = 0;  // a sample
  double activation_deviation = 0;
  double states_bytes = 16e9;  // partitioned states, which an unknown device holds
  double usable = 0.955;       // share of the device that trials get: contexts, fragmentation
  double roughness = 1;        // of the residual and of noise, as a multiple of DeepSpeed's
  // Memory beyond states, buffers and activations; without it the hypothesis's share of the device.
  std::optional<double> fixed_bytes{};
  double fixed_deviation = 0;
};

// A normal distribution, in bytes.
struct Believed {
  double mean = 0, variance = 0;
};
// `largest_peak_bytes`: of the trials so far, 0 without one.
MemoryPrior memory_prior(const Inputs& inputs, double largest_peak_bytes);

struct MemoryObservation {
  MemoryPoint point;
  bool fits = true;
  std::optional<double> peak_bytes{};        // of one that fitted
  std::optional<double> peak_above_bytes{};  // of one that ran out of memory: what it had allocated and what it wanted
  int64_t allocator_retries = 0;             // of one that fitted
};

class MemoryModel {
 public:
  MemoryModel(const std::vector<ModelAxis>& axes, const MemoryPrior& prior, const MemoryHypothesis& hypothesis);

  // `tune`: choose the scales of residual, noise and activations anew, which is most of the work; the first fit does.
  void fit(const std::vector<MemoryObservation>& observations, bool tune);

  size_t sites() const { return features_.size(); }  // of the last fit
  bool device_known() const { return prior_.device_bytes.has_value(); }
  const MemoryHypothesis& hypothesis() const { return hypothesis_; }
  // The evidence of the last fit, the hypothesis's prior included: weighs hypotheses that saw the same trials.
  double log_evidence() const { return log_evidence_; }
  double probability_of_fitting(const MemoryPoint& point) const;
  // Draws from the joint posterior, points x draws: 1 where a point fits, else 0.
  Eigen::MatrixXd draw_fits(const std::vector<MemoryPoint>& points, Eigen::Index draws, Random& random) const;
  // The probability that the cause of a failure that the hypothesis cannot explain holds for this point too.
  double surprise(const MemoryPoint& point) const { return shared_failure_probability(site_of(point)); }
  // The probability that this observation, by its place in fit(), has a cause that the hypothesis does not know.
  double unexplained(size_t observation) const {
    return posterior_.unexplained[static_cast<Eigen::Index>(observation)];
  }
  // The peak of a trial, its part that does not grow with the micro batch, and the bytes a sample.
  Believed peak(const MemoryPoint& point) const;
  Believed fixed() const;
  Believed activation() const;

 private:
  struct Features {  // of an observation, or of a point to predict
    Site site;
    double micro_batch = 1;
    double known = 0;       // the hypothesis's peak at the prior's means, as a share
    double growth = 0;      // the part of it that grows with the micro batch
    double slope = 0;       // the deviation that all points share, of that part
    bool threshold = true;  // compared with the device's memory; a measured peak is not
  };
  Features features_of(const MemoryPoint& point, bool threshold) const;
  double covariance(const Features& a, const Features& b) const;
  double residual(const Features& a, const Features& b) const;
  Eigen::VectorXd cross(const Features& features) const;
  Believed at(const Features& features) const;
  Believed believed(double prior_mean, double prior_variance, const Eigen::VectorXd& with) const;
  JointNormal joint_shortage(const std::vector<MemoryPoint>& points) const;
  void bound_slope();
  void place_device();
  void widen_small();
  // What one observation, or a part of it, says of the shortage.
  struct Evidence {
    MemoryPoint point;
    CensoredObservation sign;  // or the measurement
    bool threshold = true;     // compared with the device's memory, else with `bytes`
    double bytes = 0;          // the peak is compared with so many, or with the device less so many
  };
  std::vector<Evidence> evidence_of(const std::vector<MemoryObservation>& observations) const;
  void fill(const std::vector<Evidence>& evidence);
  void find_unexplained_failures();
  double shared_failure_probability(const Site& site) const;
  void choose_scales();
  double solve(double scale, double noise, double activation_scale);

  // A failure that the hypothesis cannot explain, and how far from it others may fail too, in log(micro batch).
  struct UnexplainedFailure {
    Site site;
    double probability = 0;  // that the hypothesis does not explain it
    double below = 0, above = 0;
  };

  MemoryPrior prior_;
  MemoryHypothesis hypothesis_;
  double unit_;                       // bytes of the share 1
  double usable_, device_deviation_;  // what trials get of the device, in units
  Kernel growth_, offsets_;
  double growth_variance_, offsets_variance_;
  // Shares of the prior's activations a sample and of their deviation, by which the hypothesis goes.
  double slope_share_ = 1, slope_deviation_share_ = 1;
  double scale_ = 1, noise_ = 0.002, activation_scale_ = 1;
  bool tuned_ = false;
  std::vector<Features> features_;  // of the observations
  std::vector<MemoryObservation> observations_;
  mutable const MemoryArm* cached_arm_ = nullptr;  // the arm that cross() was last asked about
  mutable Eigen::VectorXd cached_growth_, cached_offsets_;
  std::vector<CensoredObservation> shortages_;
  std::vector<double> widening_;  // deviations of measured peaks, besides the noise
  Eigen::MatrixXd parametric_, residual_;
  Eigen::VectorXd prior_mean_, slopes_;
  Posterior posterior_;
  std::vector<UnexplainedFailure> unexplained_failures_;
  double log_evidence_ = 0;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_MEMORY_MODEL_H_
