// The group of ranks that a training program belongs to, and the program's whole life.
//
//   int main(int argc, char** argv) {
//     return dsat::trainer::run(argc, argv, [](dsat::trainer::World& world) { ... });
//   }
//
// run() reads dsat's own options, starts the ranks (--ranks N) or joins those that another launcher has started (RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT), gives each a device of --device-memory bytes (--device: the CPU, or a CUDA
// device; ranks of one machine take them in turn), and calls the body in each of them. It answers for their end: one
// line on stderr for the first cause of a failure, and an exit status: 0 done, 1 failed or out of memory, 2 wrong usage
// or configuration. Threading: one World a process, used by the thread that got it. Ownership: lives while the body
// runs. Errors of the body: any exception.
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
  const Json& config() const { return config_; }  // what --deepspeed_config named; null: nothing
  const std::vector<std::string>& arguments() const { return options_.arguments; }
  uint64_t seed() const { return options_.seed; }
  at::Device device() const { return device_; }  // where models and batches belong
  // Bytes: what was asked for, else a CUDA device's own.
  std::optional<uint64_t> device_memory() const { return options_.device_memory; }
  bool fp16_as_bf16() const { return options_.fp16_as_bf16; }
  const std::string& program() const { return options_.program; }

 private:
  std::unique_ptr<Comm> comm_;
  WorldOptions options_;
  Json config_;
  int local_rank_;
  at::Device device_;
};

// Ends a training in good order: run() returns 0. The engine throws it when a tuning trial has measured enough.
class TuningDone : public std::exception {
 public:
  const char* what() const noexcept override { return "the tuning trial has measured what it was to measure"; }
};

// Ends the process; returns only what is wrong with the command line itself.
int run(int argc, char** argv, const std::function<void(World&)>& body);
[[noreturn]] void run(const WorldOptions& options, const std::function<void(World&)>& body);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WORLD_H_
