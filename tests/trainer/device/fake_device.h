// A device for tests on machines that have none: LibTorch sees tensors of another device than the CPU, in memory that
// the host cannot touch (a read or a write of it ends the process), and every operation on them is computed by the
// CPU's own kernels, through another mapping of the same memory.
//
// It stands where a LibTorch for the CPU has nothing: at the XPU. Threading: any thread; shared by no other process.
#ifndef DSAT_TESTS_TRAINER_DEVICE_FAKE_DEVICE_H_
#define DSAT_TESTS_TRAINER_DEVICE_FAKE_DEVICE_H_

#include <c10/core/Device.h>

#include <cstdint>

namespace dsat::trainer {

// Call it once in each process, before the first tensor of the device.
at::Device open_fake_device();

int64_t fake_device_bytes_in_use();
// How often the queues of the device were put in order (c10::Event).
int64_t fake_device_events();

}  // namespace dsat::trainer

#endif  // DSAT_TESTS_TRAINER_DEVICE_FAKE_DEVICE_H_
