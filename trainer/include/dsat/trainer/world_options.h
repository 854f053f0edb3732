// The options of dsat itself on the command line of a training program.
//
// Errors: dsat::Error, one line that names the option. Threading: a pure function.
#ifndef DSAT_TRAINER_WORLD_OPTIONS_H_
#define DSAT_TRAINER_WORLD_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsat::trainer {

// `automatic`: CUDA if the build and the machine have it, else the CPU.
enum class DeviceChoice { automatic, cpu, cuda };

struct WorldOptions {
  std::string program = "dsat-trial";  // the program's name in messages
  std::string deepspeed_config;        // a path, or URL-safe base64 of the JSON; empty: not given
  int64_t ranks = 0;                   // 0: not given; then one rank, or the number in the environment
  int64_t pipeline_stages = 0;         // --pipeline-stages; 0: the number in the configuration
  uint64_t seed = 42;
  DeviceChoice device = DeviceChoice::automatic;
  int64_t stop_grace_s = 60;              // from SIGTERM to the end of ranks that go on
  bool fp16_as_bf16 = false;              // run an fp16 configuration in bf16, because a CPU cannot compute fp16
  std::optional<uint64_t> device_memory;  // bytes per rank; absent: no limit
  std::vector<std::string> arguments;     // the other arguments, in their order
};

// `args` lacks the program's name. DSAT_DEVICE and DSAT_DEVICE_MEMORY replace --device and --device-memory.
WorldOptions parse_world_options(const std::vector<std::string>& args);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WORLD_OPTIONS_H_
