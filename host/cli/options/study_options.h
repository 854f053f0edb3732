// The options of a tuning run, from the tables of settings (dsat/host/settings.h), and their values as the library's
// structures.
//
// Threading: pure functions. Errors: dsat::Error. The study checks metrics, files and slots itself.
#ifndef DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_
#define DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/study.h"
#include "options/kit.h"

namespace dsat::cli {

// The option of a setting, by its name without dashes; the names of all settings' options, in the order of the tables.
Option setting_option(std::string_view name);
std::vector<std::string> setting_option_names();

// Which plugins run in a process of their own, and how long a call may take there.
host::PluginProcesses plugin_processes(const Values& values);

// Refuses --run-full-experiment for a simulation.
[[noreturn]] void refuse_training();

// All options but the command and the strategies.
host::StudyOptions study_options(const Values& values);
host::ResumeOptions resume_options(const Values& values);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_STUDY_OPTIONS_H_
