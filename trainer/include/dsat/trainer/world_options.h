// What dsat itself takes from the command line of a training program.
//
// Errors: dsat::Error, one line that names the option. Threading: a pure function.
#ifndef DSAT_TRAINER_WORLD_OPTIONS_H_
#define DSAT_TRAINER_WORLD_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsat::trainer {

// `automatic`: CUDA where the build and the machine have it, else the CPU.
enum class DeviceChoice { automatic, cpu, cuda };

struct WorldOptions {
  std::string program = "dsat-trial";  // names itself so in messages
  std::string deepspeed_config;        // a path, or URL-safe base64 of the JSON; empty: not given
  int64_t ranks = 0;                   // 0: not given; then one rank, or what the environment says
  int64_t pipeline_stages = 0;         // of --pipeline-stages; 0: as the configuration says
  uint64_t seed = 42;
  DeviceChoice device = DeviceChoice::automatic;
  bool fp16_as_bf16 = false;              // run a configuration in fp16, which a CPU cannot compute, in bf16
  std::optional<uint64_t> device_memory;  // bytes per rank; absent: no limit
  std::vector<std::string> arguments;     // the others, in their order
};

// `args` without the program's name. DSAT_DEVICE and DSAT_DEVICE_MEMORY stand in for --device and --device-memory.
WorldOptions parse_world_options(const std::vector<std::string>& args);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WORLD_OPTIONS_H_
