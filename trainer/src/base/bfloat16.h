// The 16-bit brain float as plain arithmetic, so that the optimizer needs no tensor header. Its bits are those of the
// upper half of a float.
#ifndef DSAT_TRAINER_BASE_BFLOAT16_H_
#define DSAT_TRAINER_BASE_BFLOAT16_H_

#include <cstdint>
#include <cstring>

namespace dsat::trainer {

struct BFloat16 {
  uint16_t bits;
};

inline float to_float(float value) { return value; }
inline float to_float(BFloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline void assign(float& to, float value) { to = value; }
// Rounds to nearest, ties to even; a NaN stays one.
inline void assign(BFloat16& to, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  to.bits = value == value ? static_cast<uint16_t>(rounded >> 16) : static_cast<uint16_t>(0x7FC0);
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_BASE_BFLOAT16_H_
