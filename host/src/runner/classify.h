// What became of a trial: decided from its files, its exit, and what the host did to it.
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

// All that speaks for one outcome or another.
struct Evidence {
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

// Reads the trial's result file and stderr. Never fails: what cannot be read is a failed trial that says so.
TrialEnd classify(const Evidence& evidence);

// The texts by which CUDA, HIP, LibTorch, the C++ library and Python say that memory ran out.
bool says_out_of_memory(std::string_view text);

// A rendezvous port that somebody else has taken.
bool says_address_in_use(std::string_view text);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_CLASSIFY_H_
