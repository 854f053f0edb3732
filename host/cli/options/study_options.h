// The options of a tuning run: declared by the tables of settings (dsat/host/settings.h), and read as the library takes
// them.
//
// Threading: pure functions. Errors: dsat::Error. What only the study can know (metrics, files, slots) it checks
// itself.
#ifndef DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_
#define DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/study.h"
#include "options/kit.h"

namespace dsat::cli {

// The option of a setting, by its name without dashes; and the names of all, in the order of the tables.
Option setting_option(std::string_view name);
std::vector<std::string> setting_option_names();

// Which plugins run in a process of their own, and what such a process may take.
host::PluginProcesses plugin_processes(const Values& values);

// --run-full-experiment of a simulation.
[[noreturn]] void refuse_training();

// All but command and strategies.
host::StudyOptions study_options(const Values& values);
host::ResumeOptions resume_options(const Values& values);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_
