// summary.txt as DeepSpeed writes it: the best experiment of each ZeRO stage and of all.
//
// Threading: pure function. Errors: none.
#ifndef DSAT_CLI_DEEPSPEED_SUMMARY_H_
#define DSAT_CLI_DEEPSPEED_SUMMARY_H_

#include <string>

#include "deepspeed/experiment_names.h"

namespace dsat::cli {

// Metrics are canonical (times in microseconds); a stage whose experiments all failed shows 0.
std::string deepspeed_summary(const host::StudyRecord& study, ExperimentNames& names);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_SUMMARY_H_
