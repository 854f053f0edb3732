// Random numbers by position, not by turn.
//
// Every number is a pure function of (seed, stream, index), so a rank can initialise just its own part of a parameter,
// and a micro batch holds the same data whichever process draws it. Threading: pure functions.
#ifndef DSAT_TRAINER_BASE_RANDOM_H_
#define DSAT_TRAINER_BASE_RANDOM_H_

#include <cstdint>

namespace dsat::trainer {

class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : key_(mix(mix(seed) ^ (stream * kGolden + 1))) {}

  uint64_t bits(uint64_t index) const { return mix(key_ + (index + 1) * kGolden); }
  // In [-1, 1), in steps of 2^-23.
  float uniform(uint64_t index) const {
    return static_cast<float>(static_cast<int32_t>(bits(index) >> 40) - (1 << 23)) * 0x1p-23f;
  }
  // In [0, limit); the bias of a modulus is far below what a random data set shows.
  int64_t below(uint64_t index, int64_t limit) const {
    return static_cast<int64_t>(bits(index) % static_cast<uint64_t>(limit));
  }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
  // The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }

  uint64_t key_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_BASE_RANDOM_H_
