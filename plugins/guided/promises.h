// Expected gains of trials compared with their real gains, to correct the next expectation.
//
// Purpose: when little is left to find, an unsure model still expects a small gain from every trial. A long study would
//   run trial after trial for nothing.
// Units: gains and objectives are logarithms of the metric; more is better. Threading: plain values. Errors: none.
#ifndef DSAT_PLUGINS_GUIDED_PROMISES_H_
#define DSAT_PLUGINS_GUIDED_PROMISES_H_

#include <deque>
#include <optional>

namespace dsat {

class Promises {
 public:
  // A trial has ended. `gain`: the expected gain; 0: no expectation. `objective`: the measurement; nullopt: none.
  void add(double gain, std::optional<double> objective);

  // The factor for an expectation, from 0 to 1: the gain of the last trials together, as a share of what was expected.
  // A gain below `tolerance` does not matter. 1 until enough trials have ended and one was measured.
  double kept(double tolerance) const;

 private:
  struct Ended {
    double promised = 0;
    double best = 0;  // best objective up to this trial
  };
  std::deque<Ended> ended_;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_GUIDED_PROMISES_H_
