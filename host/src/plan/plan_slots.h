// The slots of a study, from options, command and configuration together.
#ifndef DSAT_HOST_PLAN_PLAN_SLOTS_H_
#define DSAT_HOST_PLAN_PLAN_SLOTS_H_

#include "command/command_template.h"
#include "dsat/host/study.h"
#include "slots/slots.h"

namespace dsat::host {

// The slots of a study and of its trials. An option beats the command's own launcher flag; it is invalid if both name
// hosts or slots. Without a command the study is a simulation. A size that the command cannot take is invalid too.
// `cluster` says where trials run, and learns whether they have GPUs. Throws dsat::Error.
SlotPlan plan_study_slots(const Devices& devices, const StudyOptions& options,
                          const std::optional<CommandTemplate>& command, const std::filesystem::path& cwd,
                          const Json& user_config, const Environment& environment, ClusterOptions& cluster);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_PLAN_SLOTS_H_
