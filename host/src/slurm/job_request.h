// Builds sbatch's options for a trial, and checks them before the first trial.
// Threading: pure except for check_jobs, which asks the controller and waits. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_SLURM_JOB_REQUEST_H_
#define DSAT_HOST_SLURM_JOB_REQUEST_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "command/command_template.h"
#include "dsat/host/environment.h"
#include "dsat/host/settings.h"
#include "runner/trial_script.h"
#include "slots/slot_pool.h"

namespace dsat::host {

// How the processes of a trial are started on its nodes.
enum class Spread { command, srun, node };  // by the command; by srun for each rank; by srun for each node

struct JobRequest : ClusterOptions {
  Launcher launcher = Launcher::none;  // of the command
  bool command_has_count = false;      // the command says how many processes it starts
  std::chrono::milliseconds trial_timeout{};
  std::filesystem::path guard{};  // dsat-launch, which a node may have under this path
};

Spread spread_of(const JobRequest& request, const TrialShape& shape);

// Returns the shape of a trial that has these slots.
TrialShape shape_of(const std::vector<Slot>& slots);

// Returns what each node of a trial must have: "gpu:4"; empty: nothing.
std::string gres_of(const JobRequest& request, const TrialShape& shape);

// Sets how the command sees its slots: the scheduler has bound the devices, and only the script knows the nodes.
void prepare_for_allocation(const JobRequest& request, TrialContext& context);

// Returns sbatch's options for a trial of this shape.
std::vector<std::string> sbatch_options(const JobRequest& request, const TrialShape& shape);

// Returns a trial's script with the parts that jobs and steps have in common.
TrialScript slurm_script(const JobRequest& request, const Launch& launch);

// Writes the script that sbatch runs for a trial.
void write_job_script(const JobRequest& request, const Launch& launch);

// Parses "30", "1:30:00", "2-12", "90m"; without a unit, minutes, as in Slurm. Throws Error.
std::string slurm_time(const std::string& text);

// Asks Slurm whether it would take the jobs of every shape. Throws Error: it never would.
void check_jobs(const JobRequest& request, const std::vector<TrialShape>& shapes, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_JOB_REQUEST_H_
