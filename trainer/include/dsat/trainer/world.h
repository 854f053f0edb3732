// The group of ranks of a training program, and run(), which starts and ends the program.
//
//   int main(int argc, char** argv) {
//     return dsat::trainer::run(argc, argv, [](dsat::trainer::World& world) { ... });
//   }
//
// run() reads dsat's own options. It starts the ranks (--ranks N) or joins ranks that another launcher has started
// (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT). It gives each rank a device of --device-memory bytes (--device: the
// CPU, or a CUDA device; ranks of one machine take them in turn) and calls the body in each rank. At the end it prints
// one line on stderr for the first cause of a failure, and exits with 0 done, 1 failed or out of memory, 2 wrong usage
// or configuration. Threading: one World for each process, used by the thread that got it. Ownership: lives while the
// body runs. Errors of the body: any exception.
#ifndef DSAT_TRAINER_WORLD_H_
#define DSAT_TRAINER_WORLD_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/trainer/comm.h"
#include "dsat/trainer/world_options.h"

namespace dsat::trainer {

class World {
 public:
  World(std::unique_ptr<Comm> comm, WorldOptions options, Json config, at::Device device = at::kCPU);

  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  int local_rank() const { return local_rank_; }  // on this machine: LOCAL_RANK, else rank()
  Comm& comm() { return *comm_; }                 // of all ranks
  const Json& config() const { return config_; }  // the file of --deepspeed_config; null: none
  const std::vector<std::string>& arguments() const { return options_.arguments; }
  uint64_t seed() const { return options_.seed; }
  at::Device device() const { return device_; }  // the device for models and batches
  // In bytes: --device-memory, else the memory of a CUDA device.
  std::optional<uint64_t> device_memory() const { return options_.device_memory; }
  bool fp16_as_bf16() const { return options_.fp16_as_bf16; }
  int64_t stop_grace_s() const { return options_.stop_grace_s; }  // from SIGTERM to the end
  const std::string& program() const { return options_.program; }

 private:
  std::unique_ptr<Comm> comm_;
  WorldOptions options_;
  Json config_;
  int local_rank_;
  at::Device device_;
};

// Ends a training without an error: run() exits with 0. The engine throws it when a tuning trial has measured enough.
class TuningDone : public std::exception {
 public:
  const char* what() const noexcept override { return "the tuning trial has measured what it was to measure"; }
};

// Ends the process; returns only if the command line is wrong.
int run(int argc, char** argv, const std::function<void(World&)>& body);
[[noreturn]] void run(const WorldOptions& options, const std::function<void(World&)>& body);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WORLD_H_
