// Records LibTorch's operations of some steps and writes them as Chrome traces (chrome://tracing, Perfetto).
//
// The schedule is that of torch.profiler: `wait` steps are not recorded, `warmup` steps are recorded and dropped, and
// `active` steps are recorded and written. This is done `repeat` times (0: until the training ends). With
// profile_memory a trace also has the memory of the rank's device over time, and the part of each operation.
// Units: steps are optimizer steps, times in the file are microseconds, memory is bytes. Threading: one thread calls
// step(); operations of all threads are recorded; only one Profiler at a time. Errors: dsat::Error, one line: a wrong
// schedule, or a file that cannot be written.
#ifndef DSAT_TRAINER_PROFILER_H_
#define DSAT_TRAINER_PROFILER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dsat::trainer {

// The activities of torch.profiler. LibTorch's operations are recorded on the CPU that starts them. Kernels of CUDA
// devices are not recorded; `cuda` is an Error that names a tool for them.
enum class ProfilerActivity { cpu, cuda };

struct ProfilerOptions {
  std::vector<ProfilerActivity> activities{ProfilerActivity::cpu};
  bool profile_memory = false;
};

struct ProfilerSchedule {
  int64_t wait = 0, warmup = 0, active = 1, repeat = 0;
};

class Profiler {
 public:
  // The files are FOLDER/NAME.step<last recorded>.trace.json.
  Profiler(std::filesystem::path folder, std::string name, ProfilerSchedule schedule, ProfilerOptions options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Call it after each training step.
  void step();

 private:
  enum class State { waiting, warming_up, recording };
  State state_at(int64_t step) const;
  void enter(State state);
  void write(int64_t step) const;

  std::filesystem::path folder_;
  std::string name_;
  ProfilerSchedule schedule_;
  bool profile_memory_;
  int64_t steps_ = 0;
  State state_ = State::waiting;
  uint64_t handle_ = 0;  // of the recorder
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PROFILER_H_
