// What trials were expected to gain, beside what they did gain: how far the next promise can be believed.
//
// Purpose: where little is left to find, a model that is unsure promises a little of every trial, and a long study
//   would run trial after trial for nothing.
// Units: gains and objectives are logarithms of the metric; more is better. Threading: plain values. Errors: none.
#ifndef DSAT_PLUGINS_GUIDED_PROMISES_H_
#define DSAT_PLUGINS_GUIDED_PROMISES_H_

#include <deque>
#include <optional>

namespace dsat {

class Promises {
 public:
  // A trial has ended. `gain`: what a model expected of it, 0: none did; `objective`: what it measured, nullopt:
  // nothing.
  void add(double gain, std::optional<double> objective);

  // The share of a promise that is to be believed, from 0 to 1: what the last trials gained together, of what was
  // expected of them. A gain below `tolerance` is no matter. 1 until enough trials have ended and one has measured.
  double kept(double tolerance) const;

 private:
  struct Ended {
    double promised = 0;
    double best = 0;  // objective of all trials to this one
  };
  std::deque<Ended> ended_;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_GUIDED_PROMISES_H_
