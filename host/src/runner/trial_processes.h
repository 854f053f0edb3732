// The processes of one trial, found without dsat-launch: the trial may have killed or stopped it.
//
// A process belongs to a trial when its environment holds the trial's mark, when it is in the session of the trial's
// dsat-launch, or when a process that belongs started it. What has lost its parent becomes a child of the host, which
// is a subreaper while trials run: such a child, that no part of the host has started and that left the host's session,
// belongs to a trial whose dsat-launch is dead. Threading: control thread. Errors: none; what cannot be looked at does
// not belong.
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
// it what the host before left running. Links in the path are followed: a study has the same marks by whatever path.
inline constexpr const char* kMarkVariable = "DSAT_TRIAL_MARK";
std::string trial_mark(const std::filesystem::path& trial_dir, uint32_t attempt);

class TrialProcesses {
 public:
  TrialProcesses() = default;
  // The processes of one attempt of one trial. `launcher`: the process id of its dsat-launch, which leads its session;
  // 0: unknown.
  TrialProcesses(const std::filesystem::path& trial_dir, uint32_t attempt, pid_t launcher);
  // Those of all trials of a study, whoever started them.
  static TrialProcesses of_study(const std::filesystem::path& run_dir);

  // Those that live; a zombie does not.
  std::vector<pid_t> alive() const;

  // Kills those that live, and reaps what this process has inherited of them (not dsat-launch itself). Those that lived
  // a moment ago: call again until there is none.
  std::vector<pid_t> kill_all();

  // The same until there is none, or for that long; those that are left.
  std::vector<pid_t> end_all(std::chrono::milliseconds timeout);

 private:
  std::string variable_;  // as a process has it in its environment, from the zero before it on
  pid_t launcher_ = 0;
  unsigned long long began_ = 0;  // when dsat-launch did, in ticks since the machine's start
  std::set<pid_t> killed_;
};

// What a host and its launchers left running when they were killed: it would use the devices of trials to come.
struct Reaped {
  size_t ended = 0;             // processes that were killed, and are gone
  std::vector<pid_t> are_left;  // that cannot be ended: in the kernel, or another user's by now
};

// Kills all of a study's, and what they start meanwhile, until none is left or its patience is. Blocks that long.
Reaped end_processes_of_study(const std::filesystem::path& run_dir,
                              std::chrono::milliseconds patience = std::chrono::seconds(10));

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
