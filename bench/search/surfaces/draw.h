// Random draws for the scenarios' constants and for noise. Distributions of std:: differ between libraries.
#ifndef DSAT_BENCH_SEARCH_SURFACES_DRAW_H_
#define DSAT_BENCH_SEARCH_SURFACES_DRAW_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "dsat/random.h"

namespace dsat::bench {

class Draw {
 public:
  explicit Draw(uint64_t seed, uint64_t stream = 0, uint64_t substream = 0) : random_(seed, stream, substream) {}

  double uniform(double low, double high) { return low + (high - low) * random_.uniform(); }
  double log_uniform(double low, double high) { return low * std::pow(high / low, random_.uniform()); }
  bool chance(double probability) { return random_.uniform() < probability; }
  template <class T>
  T pick(const std::vector<T>& values) {
    return values[random_.uniform_below(values.size())];
  }
  // Box and Muller.
  double normal() {
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(1 - random_.uniform()));
    return radius * std::cos(kTwoPi * random_.uniform());
  }

 private:
  Random random_;
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_DRAW_H_
