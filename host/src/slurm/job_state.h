// What Slurm says of jobs, and what it means for a trial that left no result.
//
// Threading: pure functions. Errors: none; lines that cannot be read are passed over.
#ifndef DSAT_HOST_SLURM_JOB_STATE_H_
#define DSAT_HOST_SLURM_JOB_STATE_H_

#include <optional>
#include <string>
#include <vector>

#include "runner/engine.h"

namespace dsat::host {

struct JobState {
  std::string id, name;
  std::string state, reason;  // as squeue writes them: RUNNING, PENDING and (Resources)
  std::string nodes;
  int wait_status = 0;  // as wait() gives it
  int restarts = 0;
};

// What squeue is asked for, and how its answer is read.
std::string job_format();
std::vector<JobState> parse_jobs(const std::string& text);

bool is_waiting(const JobState& job);    // in the queue, on its way to a node, or suspended
bool is_suspended(const JobState& job);  // its processes are there and stand still
bool is_running(const JobState& job);
bool is_over(const JobState& job);  // and none of its processes is left

// Why a job that waits never starts; empty: it may.
std::string never_starts(const JobState& job);

// May that reason pass by itself? Nodes come back, an administrator opens a partition again.
bool may_pass(const JobState& job);

// Why a job that ended left no result of its trial; nullopt: Slurm knows no more than the exit status. `words`: what
// Slurm printed into the job's output.
std::optional<Verdict> verdict_of(const JobState& job, const std::string& words = {});

// Does Slurm say that it ended a job or step for its host memory? Some clusters name no other reason.
bool is_memory_kill(const std::string& words);

// Its command's end, where Slurm is the only one that knows.
ExitStatus exit_of(const JobState& job);

// May a refusal of sbatch, srun or squeue pass by itself? The controller does not answer, or a limit is reached.
bool may_pass(const std::string& message);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_JOB_STATE_H_
