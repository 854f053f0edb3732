// The DeepSpeed configuration that accelerate builds, without a file, from fields of its settings and its own options.
//
// As DeepSpeedPlugin and `accelerate launch` of accelerate 1.15.0.dev0 do it. accelerate refuses a file beside those
// fields, and beside `mixed_precision` of the settings, so a trial has neither. Threading: pure functions. Errors:
// dsat::Error with the place in the settings.
#ifndef DSAT_HOST_COMMAND_ACCELERATE_FIELDS_H_
#define DSAT_HOST_COMMAND_ACCELERATE_FIELDS_H_

#include <filesystem>
#include <optional>
#include <string>

#include "command/accelerate_settings.h"

namespace dsat::host {

// Whether accelerate starts DeepSpeed, by --use_deepspeed or the settings' distributed_type. Settings without that type
// are refused by accelerate itself.
bool starts_deepspeed(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings);
// Says why it does not, and what to do.
std::string why_no_deepspeed(const AccelerateSettings& settings);

// Returns what accelerate builds; nullopt: it does not start DeepSpeed, or has a file. Throws Error for a field that
// accelerate cannot read, and for fields beside a file.
std::optional<Json> config_of_fields(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings);

// Throws Error if the settings have fields that accelerate refuses beside a file, as it does in the user's own run.
void refuse_fields_beside_file(const AccelerateSettings& settings);

// Returns fp16, bf16 or fp8 by the command's option, else by the settings; empty: none.
std::string precision_of(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings);

// How accelerate gets the configuration.
enum class AccelerateConfig {
  none,    // the script reads it
  file,    // from a file that it or its settings name
  fields,  // it builds it
};

// Returns the changes of the settings with which accelerate takes `config_file`.
SettingsChanges changes_for_file(const AccelerateSettings& settings, const std::filesystem::path& config_file,
                                 AccelerateConfig kind);

// Takes the fields' options out of the command. Adds the options for `config_file`, where the settings do not name it,
// and for the precision, which the copy of the settings no longer has.
Argv with_config_file(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings,
                      const std::filesystem::path& config_file, AccelerateConfig kind);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ACCELERATE_FIELDS_H_
