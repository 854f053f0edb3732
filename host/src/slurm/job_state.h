// Slurm's states of jobs, and what they mean for a trial without a result.
// Threading: pure functions. Errors: none; lines that cannot be read are skipped.
#ifndef DSAT_HOST_SLURM_JOB_STATE_H_
#define DSAT_HOST_SLURM_JOB_STATE_H_

#include <optional>
#include <string>
#include <vector>

#include "runner/engine.h"

namespace dsat::host {

struct JobState {
  std::string id, name;
  std::string state, reason;  // as squeue writes them: RUNNING; PENDING with Resources
  std::string nodes;
  int wait_status = 0;  // as from wait()
  int restarts = 0;
};

// The fields that squeue is asked for, and the parser of its answer.
std::string job_format();
std::vector<JobState> parse_jobs(const std::string& text);

bool is_waiting(const JobState& job);    // in the queue, on its way to a node, or suspended
bool is_suspended(const JobState& job);  // its processes exist but do not run
bool is_running(const JobState& job);
bool is_over(const JobState& job);  // none of its processes is left

// Returns the reason why a waiting job never starts; empty: it may start.
std::string never_starts(const JobState& job);

// Whether this reason may pass by itself: nodes come back, or an administrator opens a partition again.
bool may_pass(const JobState& job);

// Returns why an ended job left no result; nullopt: Slurm knows no more than the exit status. `words`: what Slurm
// printed into the job's output.
std::optional<Verdict> verdict_of(const JobState& job, const std::string& words = {});

// The same for a job whose script came to its end, but left no note. Slurm from 24.05 on makes the folder of the job's
// output on a node that does not have it.
std::optional<Verdict> verdict_without_note(const JobState& job);

// Whether Slurm says that it ended a job or step for its use of host memory. Some clusters give no other reason.
bool is_memory_kill(const std::string& words);

// Returns the end of the command, when only Slurm knows it.
ExitStatus exit_of(const JobState& job);

// Whether a refusal of sbatch, srun or squeue may pass by itself: the controller does not answer, or a limit is
// reached.
bool may_pass(const std::string& message);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_JOB_STATE_H_
