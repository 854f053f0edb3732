// Plans the slots of a study from options, command and configuration.
#ifndef DSAT_HOST_PLAN_PLAN_SLOTS_H_
#define DSAT_HOST_PLAN_PLAN_SLOTS_H_

#include "command/command_template.h"
#include "dsat/host/study.h"
#include "slots/slots.h"

namespace dsat::host {

// An option has priority over the command's launcher flag; it is an error if both name hosts or slots, or if the
// command cannot use a size. Without a command the study is a simulation. `cluster` says where trials run, and gets
// whether they have GPUs. Throws dsat::Error.
SlotPlan plan_study_slots(const Devices& devices, const StudyOptions& options,
                          const std::optional<CommandTemplate>& command, const std::filesystem::path& cwd,
                          const Json& user_config, const Environment& environment, ClusterOptions& cluster);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_PLAN_SLOTS_H_
