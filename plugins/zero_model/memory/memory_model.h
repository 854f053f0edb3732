// What fits: a posterior over the memory ceiling.
//
// A point's shortage is its peak less what the device gives. Its prior is a law (memory_law.h), most often the formula
// for model states and buffers (dsat::cost), with unknown constants - fixed bytes, bytes a sample, scales of the
// buffers, an offset and a slope of each stage, the usable share of the device - plus a residual (kernel.h). A measured
// peak is an equation; a trial that ran out of memory, or fitted without telling its peak, is a one-sided observation
// with a probit likelihood (one_sided.h). Threading: one thread. Units: bytes, inside as shares of the device memory.
#ifndef DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_MODEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_MODEL_H_

#include <Eigen/Dense>
#include <optional>
#include <vector>

#include "zero_model/gaussian/censored.h"
#include "zero_model/gaussian/joint_normal.h"
#include "zero_model/gaussian/kernel.h"
#include "zero_model/memory/memory_hypotheses.h"

namespace dsat::guided {

struct MemoryPrior {
  std::optional<double> device_bytes;
  double activation_bytes = 0;  // a sample
  double activation_deviation = 0;
};
MemoryPrior memory_prior(const Study& study);

class MemoryModel {
 public:
  MemoryModel(const Lattice& lattice, const MemoryPrior& prior, const MemoryLaw& law);

  struct Sample {
    Point point;
    bool fits = true;
    std::optional<double> peak_bytes;  // of one that fitted
  };
  // `tune`: choose the residual's scale and the noise anew, which is most of the work; the first fit does.
  void fit(const std::vector<Sample>& observed, bool tune);

  size_t sites() const { return rows_.size(); }  // of the last fit
  bool device_known() const { return prior_.device_bytes.has_value(); }
  const MemoryLaw& law() const { return law_; }
  // Of the last fit, its law's prior included: to weigh laws that saw the same trials.
  double log_evidence() const { return log_evidence_; }
  double probability_of_fitting(const Point& point) const;
  // 1 where a point fits, else 0, of the joint posterior: points x draws.
  Eigen::MatrixXd draw_fits(const std::vector<Point>& points, Eigen::Index draws, Random& random) const;
  // The expected peak; bytes.
  double peak_bytes(const Point& point) const;

 private:
  struct Row {  // one observation, or a point that is asked about
    Site site;
    double micro_batch = 1;
    double known = 0;       // the law's peak at the prior's means, as a share
    double growth = 0;      // the part of it that grows with the micro batch
    double slope = 0;       // its common deviation
    bool threshold = true;  // compared with the device's memory; a measured peak is not
  };
  Row row_of(const Point& point, bool threshold) const;
  double covariance(const Row& a, const Row& b) const;
  double residual(const Row& a, const Row& b) const;
  Eigen::VectorXd cross(const Row& row) const;
  JointNormal joint_shortage(const std::vector<Point>& points) const;
  void add_bounds();
  void find_holes();
  double doubtful(const Site& site) const;
  void choose_scale();
  double solve(double scale, double noise, double doubt);

  // Around a failure that the law cannot explain; reaches in log(micro batch).
  struct Hole {
    Site site;
    double share = 0;  // probability that it is one
    double below = 0, above = 0;
  };

  const Lattice& lattice_;
  MemoryPrior prior_;
  MemoryLaw law_;
  double unit_;  // bytes
  double device_deviation_;
  Kernel growth_, offsets_;
  double growth_variance_, offsets_variance_;
  double scale_ = 1, noise_ = 0.002, doubt_ = 1;
  bool tuned_ = false;
  std::vector<Row> rows_;
  std::vector<Sample> samples_;
  mutable const Arm* cached_arm_ = nullptr;
  mutable Eigen::VectorXd cached_growth_, cached_offsets_;
  std::vector<Observed> observed_;
  Eigen::MatrixXd parametric_, residual_;
  Eigen::VectorXd prior_mean_, slopes_;
  Posterior posterior_;
  std::vector<Hole> holes_;
  double log_evidence_ = 0;
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_MODEL_H_
