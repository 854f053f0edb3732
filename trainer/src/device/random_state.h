// LibTorch's default random generators: what dropout and its kin draw from.
#ifndef DSAT_TRAINER_DEVICE_RANDOM_STATE_H_
#define DSAT_TRAINER_DEVICE_RANDOM_STATE_H_

#include <ATen/core/Generator.h>

#include <string>
#include <vector>

namespace dsat::trainer {

struct NamedGenerator {
  std::string name;
  at::Generator generator;
};

// The host's and, where the device is a CUDA device, its own.
std::vector<NamedGenerator> generators_of(at::Device device);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_RANDOM_STATE_H_
