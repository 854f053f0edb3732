// Runs Slurm's commands without blocking the loop.
//
// libslurm is not used: its licence is the GPL, and its interface belongs to one version of a cluster.
// Threading: control thread only. Ownership: the destructor ends running commands, without their callbacks. Errors: a
// command that cannot be started counts as failed, with the reason in `err`.
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
  bool ok = false;  // ended with status 0
  std::string out, err;
  std::string last_word() const;  // the last line of `err`, or else of `out`: the error
};

// Removes variables of a surrounding job or step that would change a command; SLURM_CONF and the like stay.
Environment without_slurm_variables(const Environment& environment);

class SlurmTools {
 public:
  using Callback = std::function<void(const ToolOutput&)>;

  // `environment`: of the commands.
  SlurmTools(Loop& loop, Environment environment);
  ~SlurmTools();

  // A command that does not answer within `patience` is killed and has failed.
  void run(const std::vector<std::string>& argv, Callback callback,
           std::chrono::milliseconds patience = std::chrono::seconds(60));

  // Runs a command and waits for it, on a loop of its own.
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

// Returns a file's name for --output of sbatch and srun, with % escaped.
std::string file_pattern(const std::filesystem::path& file);

// Throws Error if PATH lacks one of `commands` ("sbatch"), with what to do.
void require_slurm(const std::vector<std::string>& commands, const Environment& environment, const std::string& why);

// Parses "slurm 22.05.8" to {22, 5}; {0, 0}: not readable.
std::pair<int, int> parse_slurm_version(const std::string& text);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_SLURM_TOOLS_H_
