// The processes of one trial, found without dsat-launch: the trial may have killed or stopped it.
//
// A process belongs to a trial when its environment holds the trial's mark, when it is in the session of the trial's
// dsat-launch, or when a process that belongs started it. What has lost its parent becomes a child of the host, which
// is a subreaper while trials run. Threading: control thread. Errors: none; what cannot be looked at does not belong.
#ifndef DSAT_HOST_RUNNER_TRIAL_PROCESSES_H_
#define DSAT_HOST_RUNNER_TRIAL_PROCESSES_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace dsat::host {

// In every trial's environment; another for each attempt of each trial of each study. Whoever resumes a study finds by
// it what the host before left running.
inline constexpr const char* kMarkVariable = "DSAT_TRIAL_MARK";
std::string trial_mark(const std::filesystem::path& trial_dir, uint32_t attempt);

class TrialProcesses {
 public:
  TrialProcesses() = default;
  // `launcher`: the process id of its dsat-launch, which leads its session; 0: unknown.
  TrialProcesses(std::string mark, pid_t launcher) : mark_(std::move(mark)), launcher_(launcher) {}

  // Those that live; a zombie does not.
  std::vector<pid_t> alive() const;

  // Kills those that live, and reaps what this process has inherited of them (not dsat-launch itself). Those that lived
  // a moment ago: call again until there is none.
  std::vector<pid_t> kill_all();

  // The same until there is none, or for that long; those that are left.
  std::vector<pid_t> end_all(std::chrono::milliseconds timeout);

 private:
  std::string mark_;
  pid_t launcher_ = 0;
  std::set<pid_t> killed_;
};

// "4711 (python3, state D), 4712 (...)": for people, the first few.
std::string describe_processes(const std::vector<pid_t>& processes);

// While it lives, processes whose parents die become children of this one.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_PROCESSES_H_
