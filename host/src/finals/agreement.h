// Do two trainings learn the same? Losses and gradient norms, held against those of the user's own configuration.
//
// At the same batch and seed two runs agree step by step, but for the order in which numbers are added: the band. It is
// learned from runs of one configuration, has a floor by precision, and widens by the root of the steps, as errors do
// that add up at random. At another batch the norm of a mean gradient lies between its own value and the value times
// the root of the batches' ratio: the signal does not depend on the batch, the noise falls with its root. Steps count
// from 0, in texts from 1. Threading: pure functions. Errors: none. Units: shares.
#ifndef DSAT_HOST_FINALS_AGREEMENT_H_
#define DSAT_HOST_FINALS_AGREEMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/record.h"

namespace dsat::host {

// Two runs whose band is wider than this within three steps draw numbers at random: nothing can be compared.
inline constexpr double kRandom = 0.3;

// Where two curves part.
struct Mismatch {
  bool is_of_loss = true;  // else of the gradient norm
  size_t step = 0;
  double own = 0, other = 0;
};
// "the loss is 2.31 in place of 2.29 at step 1"
std::string describe(const Mismatch& mismatch);

// The least band of a run with this configuration: 0.1 % in fp32, more where numbers have 16 bits.
double band_floor(const Json& config);

class Band {
 public:
  // `runs`: of one configuration, of which the first is the reference.
  Band(std::vector<Curve> runs, double floor);

  // Why nothing can be compared if the runs themselves differ at random; empty: they agree.
  std::string why_random() const;
  // The first step in which `curve` leaves the band; nullopt: it agrees, or nothing can be compared.
  std::optional<Mismatch> leaves(const Curve& curve) const;
  // How many values of `curve` can be compared.
  size_t compared(const Curve& curve) const;
  // The largest share by which `curve` differs within the steps that can be compared.
  double farthest(const Curve& curve) const;

 private:
  struct Series {
    std::vector<std::optional<double>> own;
    std::vector<double> width;  // of each step
    bool is_random = false;
    double first_spread = 0;
  };
  static Series series_of(const std::vector<std::vector<std::optional<double>>>& runs, double floor);

  Series losses_, grad_norms_;
};

// The first loss or norm that is no finite number; nullopt: all are.
std::optional<Mismatch> first_not_finite(const Curve& curve);
// "the loss is nan at step 5"
std::string describe_not_finite(const Mismatch& mismatch);

// The fault that a run at another batch shows against the user's own, in words; empty: none. `floor`: the larger one of
// the two precisions.
struct BatchOf {
  const Curve& curve;
  int64_t train_batch = 1;
};
std::string what_does_not_scale(const BatchOf& own, const BatchOf& other);
std::string what_is_stuck(const Curve& own, const Curve& other, double floor);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_AGREEMENT_H_
