// Random draws without hidden state: a draw is a hash of (seed, stream, number of the draw).
//
// Purpose: a searcher has to decide the same for the same events, on every machine and after a restore. Nothing needs
//   saving here, and a draw does not depend on the draws of other streams. The integer arithmetic is exact. The
//   distributions of the standard library are not used, because their results differ between libraries.
// Threading: plain values.
#ifndef DSAT_RANDOM_H_
#define DSAT_RANDOM_H_

#include <cmath>
#include <cstdint>

#include "dsat/error.h"

namespace dsat {

// The finaliser of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators").
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The draws of one stream, in order. A stream is cheap: give each thing that is drawn separately (a lineage, a trial) a
// stream of its own.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0, uint64_t substream = 0)
      : key_(mix64(mix64(mix64(seed) ^ stream) ^ mix64(substream))) {}

  // 64 uniform bits.
  uint64_t next() { return mix64(key_ ^ mix64(draw_++)); }

  // Uniform in [0, n). n = 0 is an Error.
  uint64_t uniform_below(uint64_t n) {
    if (n == 0) throw Error("uniform_below(0): there is nothing to draw from");
    // Draws beyond the last whole multiple of n would favour small numbers.
    const uint64_t excess = (UINT64_MAX % n + 1) % n;
    for (;;) {
      const uint64_t bits = next();
      if (bits <= UINT64_MAX - excess) return bits % n;
    }
  }

  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Binomial(n, 1/2): heads in n tosses. Exact up to 2^16 tosses, then the normal approximation.
  uint64_t binomial_half(uint64_t n) {
    constexpr uint64_t kExact = 1u << 16;
    if (n > kExact) return binomial_half_of_many(n);
    uint64_t heads = 0;
    for (; n >= 64; n -= 64) heads += ones(next());
    return n == 0 ? heads : heads + ones(next() >> (64 - n));
  }

 private:
  static uint64_t ones(uint64_t bits) {
    uint64_t count = 0;
    for (; bits != 0; bits &= bits - 1) ++count;
    return count;
  }

  // The sum of twelve uniforms has a variance of 1. sqrt is exact in IEEE arithmetic; log and cos are not.
  uint64_t binomial_half_of_many(uint64_t n) {
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += uniform();
    const double count = static_cast<double>(n);
    const double heads = std::floor(count / 2 + normal * std::sqrt(count) / 2 + 0.5);
    return heads < 0 ? 0 : heads > count ? n : static_cast<uint64_t>(heads);
  }

  uint64_t key_;
  uint64_t draw_ = 0;
};

}  // namespace dsat

#endif  // DSAT_RANDOM_H_
