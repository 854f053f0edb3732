// Does a step take longer with a larger micro batch? If not, the script ignores its configuration.
//
// Purpose: a script that does not read its configuration takes the same time and memory whatever it is given, while its
//   throughput is computed from the configured batch and grows with it. A search then finds nothing but large numbers.
//   All measured trials count, whatever else differs between them: a line is fitted to the logarithms of time and
//   micro batch, and the upper end of its 95 % interval says by how much a step may have grown.
// Threading: control thread. Errors: none. Cost: a trial costs the same, however many there are.
#ifndef DSAT_HOST_FINALS_FLAT_STEPS_H_
#define DSAT_HOST_FINALS_FLAT_STEPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// The least squares line through points that come one by one.
class FittedLine {
 public:
  void add(double x, double y);
  double count() const { return count_; }
  // The upper end of the 95 % interval of the slope; infinite for fewer than three points, or all at one x.
  double highest_slope() const;

 private:
  double count_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;
};

class FlatSteps {
 public:
  // A trial has ended, in any order.
  void add(const Trial& trial);
  // Why no throughput of this script means anything; nullopt: nothing speaks against it.
  std::optional<std::string> why() const;

 private:
  struct Measured {
    uint64_t trial = 0;
    double micro_batch = 0, latency_us = 0;
  };
  // Trials with the same accumulation on as many devices: only those are comparable.
  struct Group {
    FittedLine times, peaks;
    Measured smallest, largest;
    std::set<int> stages;
    double factor = 0;  // how far a real script may be flat, by the weakest evidence of these trials
  };
  static bool is_flat(const Group& group);

  std::map<std::pair<double, double>, Group> groups_;
  bool fills_memory_ = false;  // a trial ran out of it: what the script takes depends on what it is given
};

// The reason why a study with these trials has no gain.
std::optional<std::string> why_steps_say_nothing(const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_FLAT_STEPS_H_
