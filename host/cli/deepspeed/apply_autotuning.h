// What the `autotuning` section of the user's configuration means for a study.
//
// An option on the command line beats the section. What the section leaves out keeps dsat's defaults, in DeepSpeed's
// form DeepSpeed's documented ones. Threading: pure functions but for read_autotuning(), which reads a file. Errors:
// dsat::Error, one line that names the key.
#ifndef DSAT_CLI_DEEPSPEED_APPLY_AUTOTUNING_H_
#define DSAT_CLI_DEEPSPEED_APPLY_AUTOTUNING_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "deepspeed/autotuning_section.h"
#include "dsat/host/plugins.h"
#include "dsat/host/study.h"
#include "options/kit.h"

namespace dsat::cli {

struct AutotuningChoice {
  std::filesystem::path file;
  Json config;  // of the user; null: it cannot be read, which is for the study to say
  AutotuningSection section;
  bool deepspeed_form = false;  // --autotuning on the command line
  // Below --autotuning a section that is not there is one that leaves everything out.
  bool holds() const { return deepspeed_form || (section.present && section.enabled.value_or(true)); }
};

// Reads the configuration that the arguments name, or `ds_config`. One that is a pipe is read here and never again, so
// that what is wrong with it is an Error here.
AutotuningChoice read_autotuning(const Tokens& arguments, const std::optional<std::string>& ds_config,
                                 bool deepspeed_form);

// The searcher that stands for tuner_type, and one line that says so; nullopt: the section names none.
struct TunerChoice {
  std::string searcher, notice;
};
std::optional<TunerChoice> searcher_of(const AutotuningChoice& choice);

// Takes the section's values into `options`; returns notices for the person, line by line.
std::vector<std::string> apply_autotuning(const AutotuningChoice& choice, const Values& values,
                                          const host::PluginInfo& searcher, host::StudyOptions& options);

// The ZeRO stages that DeepSpeed would tune for this configuration: the one that it names, else all; a list of stages
// is an axis of its own. nullopt: it names none that there is.
std::optional<std::vector<int>> deepspeed_stages(const Json& config);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_APPLY_AUTOTUNING_H_
