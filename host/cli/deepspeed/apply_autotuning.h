// Applies the `autotuning` section of the user's configuration to a study.
//
// An option on the command line beats the section. A key that the section leaves out keeps its default: dsat's, or in
// DeepSpeed's form the one that DeepSpeed documents. Threading: pure functions but for read_autotuning(), which reads a
// file. Errors: dsat::Error, one line that names the key.
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
  Json config;  // of the user; null: it cannot be read, and the study reports that
  AutotuningSection section;
  bool deepspeed_form = false;  // --autotuning on the command line
  // With --autotuning a missing section counts as an empty one.
  bool holds() const { return deepspeed_form || (section.present && section.enabled.value_or(true)); }
};

// Reads the configuration that the arguments name, or `ds_config`. A pipe can be read only once, so its errors are
// reported here.
AutotuningChoice read_autotuning(const Tokens& arguments, const std::optional<std::string>& ds_config,
                                 bool deepspeed_form);

// The searcher for tuner_type, and a line about it; nullopt: the section has no tuner_type.
struct TunerChoice {
  std::string searcher, notice;
};
std::optional<TunerChoice> searcher_of(const AutotuningChoice& choice);

// Copies the section's values into `options`. Returns notices for the user, one line each.
std::vector<std::string> apply_autotuning(const AutotuningChoice& choice, const Values& values,
                                          const host::PluginInfo& searcher, host::StudyOptions& options);

// The ZeRO stages that DeepSpeed would tune for this configuration: its stage, or all. A list of stages is an axis of
// the tuning space and means all here. nullopt: its stage does not exist.
std::optional<std::vector<int>> deepspeed_stages(const Json& config);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_APPLY_AUTOTUNING_H_
