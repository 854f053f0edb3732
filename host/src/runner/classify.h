// The outcome of a trial: decided from its files, its exit, and what the host did to it.
//
// Threading: pure but for reading the trial's own files. docs/trial.md has the rules and their order.
#ifndef DSAT_HOST_RUNNER_CLASSIFY_H_
#define DSAT_HOST_RUNNER_CLASSIFY_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "base/subprocess.h"
#include "dsat/error.h"
#include "runner/runner.h"

namespace dsat::host {

// What is known of one run of a trial: its outcome is decided from this and its files.
struct RunFacts {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Json config;
  bool model_info = false;
  int end_profile_step = 5;
  std::filesystem::path trial_dir;
  ExitStatus exit;
  std::string timed_out;             // which limit was passed; empty: none
  bool stopped = false;              // the host was asked to stop it
  bool kernel_oom_kills = false;     // the kernel killed some process for want of memory while it ran
  std::string started_at, ended_at;  // RFC 3339
};

// Reads the trial's result file and stderr. Never fails: a file that cannot be read makes a failed trial with that
// reason.
TrialEnd classify(const RunFacts& facts);

// Is there a message in it by which CUDA, HIP, LibTorch, the C++ library or Python report that memory ran out?
bool reports_out_of_memory(std::string_view text);

// Is there a message in it that the rendezvous port is another program's?
bool reports_address_in_use(std::string_view text);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_CLASSIFY_H_
