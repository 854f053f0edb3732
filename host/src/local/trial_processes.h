// Finds and ends the processes of a trial without dsat-launch, which the trial may have killed or stopped.
//
// A process belongs to a trial if its environment has the trial's mark, if it is in the session of the trial's
// dsat-launch, or if a process of the trial started it. A process that loses its parent becomes a child of the host,
// which is a subreaper while trials run. If the host did not start such a child and it is not in the host's session, it
// belongs to a trial whose dsat-launch is dead. Threading: control thread. Errors: none; a process that cannot be read
// does not belong.
#ifndef DSAT_HOST_LOCAL_TRIAL_PROCESSES_H_
#define DSAT_HOST_LOCAL_TRIAL_PROCESSES_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace dsat::host {

// The variable in every trial's environment, with a different value for each attempt of each trial of each study. A
// resumed study finds by it what the earlier host left running. Links in the path are resolved, so a study has the same
// marks by whatever path.
inline constexpr const char* kMarkVariable = "DSAT_TRIAL_MARK";
std::string trial_mark(const std::filesystem::path& trial_dir, uint32_t attempt);

class TrialProcesses {
 public:
  TrialProcesses() = default;
  // The processes of one attempt. `launcher`: process id of its dsat-launch, which leads its session; 0: unknown.
  TrialProcesses(const std::filesystem::path& trial_dir, uint32_t attempt, pid_t launcher);
  // The processes of all trials of a study, whoever started them.
  static TrialProcesses of_study(const std::filesystem::path& run_dir);

  // Returns the live processes, without zombies.
  std::vector<pid_t> alive() const;

  // Kills the live processes, and reaps those that this process inherited (not dsat-launch). Returns the processes that
  // were alive; call again until there is none.
  std::vector<pid_t> kill_all();

  // Kills until no process is left or the timeout is over. Returns the processes that are left.
  std::vector<pid_t> end_all(std::chrono::milliseconds timeout);

 private:
  std::string variable_;  // as it stands in a process's environment, with the zero before it
  pid_t launcher_ = 0;
  unsigned long long began_ = 0;  // start of dsat-launch, in ticks since the machine's start
  std::set<pid_t> killed_;
};

// The result of ending what an earlier host and its launchers left running, which would use the devices of new trials.
struct Reaped {
  size_t ended = 0;             // processes that were killed and are gone
  std::vector<pid_t> are_left;  // processes that cannot be ended: held by the kernel, or another user's
};

// Kills all processes of a study and their children until none is left or `patience` is over. Blocks until then.
Reaped end_processes_of_study(const std::filesystem::path& run_dir,
                              std::chrono::milliseconds patience = std::chrono::seconds(10));

// Returns the first few as text: "4711 (python3, state D), 4712 (...)".
std::string describe_processes(const std::vector<pid_t>& processes);

// While it lives, processes whose parents die become children of this process.
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

#endif  // DSAT_HOST_LOCAL_TRIAL_PROCESSES_H_
