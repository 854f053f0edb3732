// Expected gains of trials compared with their real gains, to correct the next expectation.
//
// Purpose: a model expects a small gain from every trial, even where nothing is left to find. Without a correction a
//   study would run trial after trial for nothing.
// Units: gains and the best are logarithms of the metric; more is better. Threading: plain values. Errors: none.
#ifndef DSAT_PLUGINS_GUIDED_PROMISES_H_
#define DSAT_PLUGINS_GUIDED_PROMISES_H_

#include <cstddef>
#include <deque>

namespace dsat {

class Promises {
 public:
  // Trials that are kept. A shorter study ends by its limits, or by what the model expects.
  static constexpr size_t kMost = 64;

  // A trial has ended that was expected to gain `gain`, and the best was expected at `best` before it.
  void add(double gain, double best);

  // The factor for an expectation, from 0 to 1: what the last `count` trials, at most kMost, have gained together, as a
  // share of what was expected. `best` is where the best is expected now. A gain below `tolerance` does not matter.
  // 1 until so many trials have ended.
  double kept(size_t count, double best, double tolerance) const;

 private:
  struct Ended {
    double promised = 0;
    double best = 0;
  };
  std::deque<Ended> ended_;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_GUIDED_PROMISES_H_
