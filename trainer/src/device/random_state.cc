// Lists the generators whose state a checkpoint keeps, through at::Context, which knows those of every device.
// The names are part of the checkpoint format: a changed name would leave older states unread.
#include "device/random_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace dsat::trainer {

std::vector<NamedGenerator> generators_of(at::Device device) {
  std::vector<NamedGenerator> all = {{"random generator", at::detail::getDefaultCPUGenerator()}};
  if (device.is_cuda()) all.push_back({"random generator of the device", at::globalContext().defaultGenerator(device)});
  return all;
}

}  // namespace dsat::trainer
