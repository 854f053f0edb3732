// The options of a tuning run as the library takes them.
//
// Threading: pure functions. Errors: dsat::Error. What only the study can know (metrics, files, slots) it checks
// itself.
#ifndef DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_
#define DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_

#include "dsat/host/study.h"
#include "options/kit.h"

namespace dsat::cli {

// All but command and strategies.
host::StudyOptions study_options(const Values& values);
host::ResumeOptions resume_options(const Values& values);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_
