// Chooses a study's runner and checks what it needs before the first trial. Only this file knows all runners.
// Threading: control thread; runs Slurm's commands and waits for them. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_PLAN_RUNNERS_H_
#define DSAT_HOST_PLAN_RUNNERS_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "command/command_template.h"
#include "dsat/host/environment.h"
#include "plan/plan.h"
#include "runner/runner.h"
#include "slots/slots.h"

namespace dsat::host {

inline constexpr const char* kLocalRunner = "local";
inline constexpr const char* kPilotRunner = "pilot";
inline constexpr const char* kSlurmRunner = "slurm";
inline constexpr const char* kPrefixRunner = "prefix";

// Sets cluster.runner if the options leave it open: the pilot inside a Slurm allocation, the prefix with
// --runner-command, else this machine. Throws for an unknown runner, for an option of another runner, and if the
// machine lacks what the runner needs.
void choose_runner(const StudyOptions& options, const std::optional<CommandTemplate>& command,
                   const Environment& environment, ClusterOptions& cluster);

// Returns the slots of an allocation, or placeholders for those of a job; empty: the runner uses other slots.
std::vector<Slot> runner_slots(const SlotRequest& request, const std::optional<CommandTemplate>& command,
                               const Environment& environment, ClusterOptions& cluster);

// Checks that Slurm would take the jobs and that hosts can be reached. Starts nothing.
void check_runner(const Plan& plan, const std::optional<CommandTemplate>& command, const Environment& environment);

// If the study is resumed in another allocation, its trials run on that allocation's nodes.
void renew_slots(Plan& plan, const Environment& environment);

std::unique_ptr<Runner> make_runner(Loop& loop, const Plan& plan, std::optional<CommandTemplate> command,
                                    const Environment& environment, const std::filesystem::path& launcher,
                                    const std::filesystem::path& probe);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_RUNNERS_H_
