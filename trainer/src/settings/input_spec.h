// What a model takes, in text: one entry an input, separated by commas, each of one sample.
//
//   float:3x32x32        real numbers, uniform in [-1, 1), in the engine's type
//   int<512>:64          integers from 0 to below 512
//
// The shape is that of a sample: the micro batch comes before it. Errors: dsat::Error, one line. Threading: pure
// functions.
#ifndef DSAT_TRAINER_SETTINGS_INPUT_SPEC_H_
#define DSAT_TRAINER_SETTINGS_INPUT_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

namespace dsat::trainer {

struct InputSpec {
  int64_t limit = 0;           // of integers; 0: real numbers
  std::vector<int64_t> shape;  // of one sample; empty: a number
};

std::vector<InputSpec> parse_input_spec(const std::string& text);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_INPUT_SPEC_H_
