// The device that a rank computes on: the CPU, or a CUDA device where the build has a CUDA LibTorch.
//
// Threading: open_device() once in a rank's process, before its first tensor; current_stream() and synchronize() for
// the calling thread's own queue. Errors: dsat::Error.
#ifndef DSAT_TRAINER_DEVICE_DEVICE_H_
#define DSAT_TRAINER_DEVICE_DEVICE_H_

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>

#include "dsat/trainer/world_options.h"

namespace dsat::trainer {

// Decides `automatic`: CUDA if the build has it and the machine a device, else the CPU. Leaves this process without
// CUDA: ranks are forked from it, and CUDA does not outlive a fork. Throws where a named device is not to be had.
DeviceChoice resolve_device(DeviceChoice choice);

// Opens this rank's device for a resolved choice: it becomes the process's current device, and its memory
// (device_memory.h) stays within `budget_bytes`. Ranks of one machine take its devices in turn.
at::Device open_device(DeviceChoice choice, int local_rank, std::optional<uint64_t> budget_bytes);

// The queue that this thread's operations on the device go to.
c10::Stream current_stream(at::Device device);
// Returns when what this thread has started on the device has ended; on the CPU at once.
void synchronize(at::Device device);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_DEVICE_H_
