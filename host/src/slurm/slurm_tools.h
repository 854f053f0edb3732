// Slurm's commands: found in PATH, run without holding up the loop, their words read.
//
// The commands and not libslurm: its licence is the GPL, and its interface belongs to one version of a cluster.
// Threading: control thread only. Ownership: destroying it ends the commands that still run; their callbacks then never
// come. Errors: a command that cannot be started is one that failed, with the reason in `err`.
#ifndef DSAT_HOST_SLURM_SLURM_TOOLS_H_
#define DSAT_HOST_SLURM_SLURM_TOOLS_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "dsat/host/environment.h"

namespace dsat::host {

struct ToolOutput {
  bool ok = false;  // it ended with status 0
  std::string out, err;
  std::string last_word() const;  // the last line of `err`, else of `out`: what went wrong
};

// Variables of a surrounding job or step that would change what a command does; SLURM_CONF and the like stay.
Environment without_slurm_variables(const Environment& environment);

class SlurmTools {
 public:
  using Callback = std::function<void(const ToolOutput&)>;

  // The environment is that of the commands.
  SlurmTools(Loop& loop, Environment environment);
  ~SlurmTools();

  // A command that does not answer within `patience` is killed, and has failed.
  void run(const std::vector<std::string>& argv, Callback callback,
           std::chrono::milliseconds patience = std::chrono::seconds(60));

  // Runs one and waits for it, without a loop that anything else lives in.
  static ToolOutput run_now(const std::vector<std::string>& argv, const Environment& environment,
                            std::chrono::milliseconds patience = std::chrono::seconds(60));

  const Environment& environment() const { return environment_; }

 private:
  struct Run {
    std::unique_ptr<Subprocess> process;
    int out = -1, err = -1;
    uint64_t timer = 0;
    Callback callback;
  };
  void finish(uint64_t number, const ExitStatus& exit);

  Loop& loop_;
  Environment environment_;
  std::map<uint64_t, Run> runs_;
  uint64_t next_ = 0;
};

// A file's name as --output of sbatch and srun takes it, where % begins a replacement.
std::string file_pattern(const std::filesystem::path& file);

// The tools of this machine: "sbatch" and the like. Throws Error, naming what PATH lacks and what to do.
void require_slurm(const std::vector<std::string>& commands, const Environment& environment, const std::string& why);

// 22.05 of "slurm 22.05.8": {22, 5}; {0, 0}: it cannot be read.
std::pair<int, int> parse_slurm_version(const std::string& text);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_SLURM_TOOLS_H_
