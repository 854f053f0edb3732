// Chooses and opens a rank's device. Whether the machine has CUDA is asked in a forked child, so that this process
// never starts CUDA; streams are reached through LibTorch's device guards, so this file needs no header of CUDA.
#include "device/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "device/budget_allocator.h"
#include "device/cuda_support.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

// The child starts CUDA and exits with the answer: the parent must stay without CUDA (see resolve_device).
bool machine_has_cuda() {
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) ::_exit(cuda_device_count() > 0 ? 0 : 1);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

DeviceChoice resolve_device(DeviceChoice choice) {
  if (choice == DeviceChoice::cpu) return choice;
  const bool is_wanted = choice == DeviceChoice::cuda;
  if (!kHasCuda) {
    if (is_wanted) throw Error("--device cuda: this program was built with a LibTorch for the CPU; use --device cpu");
    return DeviceChoice::cpu;
  }
  if (machine_has_cuda()) return DeviceChoice::cuda;
  if (is_wanted) throw Error("--device cuda: no CUDA device is visible here; see CUDA_VISIBLE_DEVICES");
  return DeviceChoice::cpu;
}

at::Device open_device(DeviceChoice choice, int local_rank, std::optional<uint64_t> budget_bytes) {
  if (choice != DeviceChoice::cuda) {
    set_device_memory(install_budget(budget_bytes));
    return at::kCPU;
  }
  const int count = cuda_device_count();
  if (count < 1)
    throw Error(DSAT_INTERNAL,
                "no CUDA device is visible to this rank, but its launcher saw one; see CUDA_VISIBLE_DEVICES");
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(local_rank % count));
  use_cuda_device(device.index());
  set_device_memory(cuda_memory(device.index(), budget_bytes));
  return device;
}

c10::Stream current_stream(at::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

void synchronize(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeStream(current_stream(device));
}

}  // namespace dsat::trainer
