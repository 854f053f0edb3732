// What a layer says of one of its parameters before any memory is taken for it.
//
// Threading: values. Errors: none.
#ifndef DSAT_TRAINER_LAYOUT_PARAMETER_H_
#define DSAT_TRAINER_LAYOUT_PARAMETER_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dsat::trainer {

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  // Initial value: offset + bound x u, u uniform in [-1, 1).
  float offset = 0;
  float bound = 0;
  uint64_t stream = 0;  // of u: the parameter's number in the whole model, however it is cut and grouped
  int64_t update = 0;   // how it is updated: its place in the optimizer's groups

  int64_t numel() const {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return n;
  }
};

inline ParameterSpec zeros(std::string name, std::vector<int64_t> shape) { return {std::move(name), std::move(shape)}; }
inline ParameterSpec ones(std::string name, std::vector<int64_t> shape) {
  return {std::move(name), std::move(shape), 1.0f, 0.0f};
}
// A uniform distribution with the standard deviation `stddev`.
inline ParameterSpec spread(std::string name, std::vector<int64_t> shape, double stddev) {
  return {std::move(name), std::move(shape), 0.0f, static_cast<float>(stddev * std::sqrt(3.0))};
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_PARAMETER_H_
