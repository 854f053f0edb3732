// The shell script that runs a trial on another machine: below srun or ssh, or as a job of its own.
//
// The script notes its start and its end in files of the trial's folder, which every machine sees: what they say counts
// more than what the program that carried the script there knows of it.
// Threading: pure but for the trial's folder. Errors: dsat::Error when the script cannot be written.
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
  // Starts its arguments once for every rank of the trial, or once a node; empty: the command runs once, here.
  Argv spread{};
  bool spread_is_ranks = false;  // then each of them learns its rank from Slurm's variables
  // The nodes of the trial; empty: those of the job, which only the script itself can know.
  std::vector<std::string> nodes{};
  int slots_per_node = 1;
  bool writes_hostfile = false;  // kHostfile of the trial's folder, of those nodes
  // A scheduler runs the script once for each task of the trial, and gathers what they print. The first task notes.
  bool is_task = false;
  std::string first_address{};       // of the first task's node; empty: the script runs there, and asks for its name
  bool has_bound_devices = false;    // of those that the scheduler shows, the trial takes its slots' ordinals
  std::filesystem::path launcher{};  // dsat-launch, where nobody else ends what the command leaves behind
};

// In a word of the command: the name of the trial's first node, known when the script runs.
inline constexpr const char* kFirstNode = "{first_node}";

void write_trial_script(const TrialScript& script);

// What the script noted. The values are as the machine that it ran on has them.
struct ScriptNote {
  std::string job, step, host;    // of Slurm's variables; empty: not below Slurm
  int pid = 0;                    // of the script
  std::string time;               // RFC 3339
  int exit_status = -1;           // of an end: the command's, 128 and the signal where one ended it
  bool was_signalled = false;     // of an end: a signal had asked the script to end
  bool kernel_oom_kills = false;  // of an end: the kernel killed some process for want of memory while it ran
};

// A note of this attempt; nullopt: none that is whole.
std::optional<ScriptNote> read_note(const std::filesystem::path& folder, const char* file, uint32_t attempt);
std::optional<ScriptNote> parse_note(const std::string& text, uint32_t attempt);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_SCRIPT_H_
