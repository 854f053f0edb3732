// LibTorch's default random generators: what dropout and similar layers draw from.
//
// Ownership: a generator is a handle on LibTorch's own. Threading: the compute thread. Errors: what LibTorch throws.
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

// The host's generator and, where the device is a CUDA device, the device's. The names are those in a checkpoint.
std::vector<NamedGenerator> generators_of(at::Device device);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_RANDOM_STATE_H_
