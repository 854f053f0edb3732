// Writes the shell script that runs a trial on another machine: below srun or ssh, or as a job.
//
// The script notes its start and end in files of the trial's folder, which every machine sees. These notes count more
// than what the client program reports.
// Threading: pure except for the trial's folder. Errors: dsat::Error if the script cannot be written.
#ifndef DSAT_HOST_RUNNER_TRIAL_SCRIPT_H_
#define DSAT_HOST_RUNNER_TRIAL_SCRIPT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/engine.h"

namespace dsat::host {

inline constexpr const char* kScriptFile = "run.sh";
inline constexpr const char* kStartedFile = "run_started.json";
inline constexpr const char* kEndedFile = "run_ended.json";

struct TrialScript {
  const Launch& launch;
  // Starts its arguments once per rank or once per node; empty: the command runs once, on this node.
  Argv spread{};
  bool spread_is_ranks = false;  // `spread` starts ranks, which read their rank from Slurm's variables
  // The trial's nodes; empty: those of the job, which only the running script knows.
  std::vector<std::string> nodes{};
  int slots_per_node = 1;
  bool writes_hostfile = false;  // writes kHostfile with these nodes into the trial's folder
  // A scheduler runs the script once per task of the trial and collects their output. The first task writes the notes.
  bool is_task = false;
  std::string first_address{};       // of the first task's node; empty: the script runs there and finds the name
  bool has_bound_devices = false;    // the trial takes its slots' ordinals among the devices that the scheduler shows
  std::filesystem::path launcher{};  // dsat-launch; set if nobody else ends the command's processes
};

// In a word of the command, stands for the name of the trial's first node, which the running script fills in.
inline constexpr const char* kFirstNode = "{first_node}";

void write_trial_script(const TrialScript& script);

// A note of the script. The values are those of the machine where it ran.
struct ScriptNote {
  std::string job, step, host;    // from Slurm's variables; empty: not below Slurm
  int pid = 0;                    // of the script
  std::string time;               // RFC 3339
  int exit_status = -1;           // in an end note: the command's status; 128 plus the signal if a signal ended it
  bool was_signalled = false;     // in an end note: a signal had asked the script to end
  bool kernel_oom_kills = false;  // in an end note: the kernel killed a process for lack of memory
};

// Returns a note of this attempt; nullopt: there is no complete one.
std::optional<ScriptNote> read_note(const std::filesystem::path& folder, const char* file, uint32_t attempt);
std::optional<ScriptNote> parse_note(const std::string& text, uint32_t attempt);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_SCRIPT_H_
