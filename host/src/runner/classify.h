// The outcome of a trial: decided from its files, its exit, and what the host did to it.
//
// Threading: pure but for reading the trial's own files. docs/trial.md has the rules and their order.
#ifndef DSAT_HOST_RUNNER_CLASSIFY_H_
#define DSAT_HOST_RUNNER_CLASSIFY_H_

#include <filesystem>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "command/launchers.h"
#include "dsat/error.h"
#include "runner/engine.h"
#include "runner/runner.h"

namespace dsat::host {

// What is known of one run of a trial: its outcome is decided from this and its files.
struct RunFacts {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Json config;
  bool model_info = false;
  int start_profile_step = 3, end_profile_step = 5;
  std::filesystem::path trial_dir;
  std::filesystem::path cwd;  // where it ran
  Launcher launcher = Launcher::none;
  bool expects_rank_logs = false;         // the command has its launcher write each rank's output to a file
  bool on_processors = false;             // no accelerator: the machine's memory is the device's
  std::vector<std::string> oom_patterns;  // the user's own, beside the table of failure_patterns.h
  std::filesystem::path python_package;   // the folder of the package dsat; empty: it was not found
  std::vector<std::string> hosts;         // of a trial on several: pdsh begins each line with its host's name
  uint16_t port = 0;                      // where its ranks were to meet; 0: unknown
  ExitStatus exit;
  std::string timed_out;             // which limit was passed; empty: none
  bool stopped = false;              // the host was asked to stop it
  std::string not_started;           // why the machine could not start it; empty: it was started
  std::string abandoned;             // its processes that cannot be ended; empty: none
  std::optional<Verdict> verdict;    // what the engine knows of a result that is missing
  bool kernel_oom_kills = false;     // the kernel killed some process for want of memory while it ran
  std::string started_at, ended_at;  // RFC 3339
  std::string seen_outcome;          // what an earlier host made of it; empty: none has seen its end
};

// Reads the trial's result file and what it printed. Never fails: a file that cannot be read makes a failed trial with
// that reason.
TrialEnd classify(const RunFacts& facts);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_CLASSIFY_H_
