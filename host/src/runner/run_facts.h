// One run of a trial as its runner and its folder know it.
//
// Threading: a plain value.
#ifndef DSAT_HOST_RUNNER_RUN_FACTS_H_
#define DSAT_HOST_RUNNER_RUN_FACTS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "command/launchers.h"
#include "dsat/error.h"
#include "runner/engine.h"

namespace dsat::host {

struct RunFacts {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Json config;
  bool model_info = false;
  int start_profile_step = 3, end_profile_step = 5;
  std::filesystem::path trial_dir;
  std::filesystem::path cwd;  // where the trial ran
  Launcher launcher = Launcher::none;
  bool expects_rank_logs = false;               // the command has its launcher write each rank's output to a file
  bool on_processors = false;                   // no accelerator: the device memory is the machine's
  std::vector<std::string> oom_patterns;        // patterns of the user, in addition to failure_patterns.h
  std::string loss_pattern, grad_norm_pattern;  // of the user; empty: none
  std::string metric_pattern;                   // of the user; empty: none
  bool has_configuration = true;                // false: the command takes none, and nothing says how large a batch is
  std::filesystem::path python_package;         // the folder of the package dsat; empty: not found
  std::vector<std::string> hosts;  // the hosts of a trial on several hosts; pdsh begins each line with a host's name
  uint16_t port = 0;               // MASTER_PORT of the trial; 0: unknown
  ExitStatus exit;
  std::string timed_out;             // the limit that was passed; empty: none
  bool stopped = false;              // the host was asked to stop the trial
  bool window_is_full = false;       // ended, since it has printed all that --metric-pattern needs
  std::string not_started;           // why the machine could not start the trial; empty: it was started
  std::string abandoned;             // the trial's processes that cannot be ended; empty: none
  std::optional<Verdict> verdict;    // what the engine knows about a missing result
  bool kernel_oom_kills = false;     // the kernel killed a process for lack of memory meanwhile
  std::string started_at, ended_at;  // RFC 3339
  std::string seen_outcome;          // the outcome that an earlier host recorded; empty: none did
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_RUN_FACTS_H_
