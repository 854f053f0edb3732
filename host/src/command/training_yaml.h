// The YAML file in a command that holds the training's arguments, as LLaMA-Factory, axolotl and TRL take them; or a
// JSON file, as HfArgumentParser takes it, too.
//
// It may name the configuration (`deepspeed: FILE`), or hold it, and any file may have keys that are tuned. Each trial
// gets a copy with its configuration and batch sizes. Words as OmegaConf takes them (`gradient_accumulation_steps=4`)
// go before the file's values and follow, too. Threading: pure except for reading files. Errors: dsat::Error with the
// place in the file.
#ifndef DSAT_HOST_COMMAND_TRAINING_YAML_H_
#define DSAT_HOST_COMMAND_TRAINING_YAML_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "command/command_args.h"
#include "command/launchers.h"
#include "dsat/error.h"

namespace dsat::host {

// Parsers know the format by the ending.
inline constexpr const char* kBestTrainFile = "best_train.yaml";
inline constexpr const char* kBestTrainJsonFile = "best_train.json";

struct TrainingYaml {
  FlagUse use;                 // the word that names the file
  std::filesystem::path file;  // absolute
  std::string text;
  Json root;
  std::string config_name;                // what `deepspeed:` names; empty: nothing
  std::string config_place;               // of `deepspeed:`, for messages
  Json config;                            // the configuration in the file; null: none
  const char* micro_batch_key = nullptr;  // micro_batch_size of axolotl, or per_device_train_batch_size
  std::vector<std::string> tuned;         // further dotted keys of the file that trials may change
  bool takes_keys = false;                // keys that the file does not have may be added: its reader knows them

  bool is_json() const { return file.extension() == ".json"; }
  const char* name_in_trial() const { return is_json() ? "train.json" : "train.yaml"; }
  const char* name_of_best() const { return is_json() ? kBestTrainJsonFile : kBestTrainFile; }
  bool has_configuration() const { return !config_name.empty() || config.is_object(); }
  std::string text_at(const char* key) const;  // a scalar at the top; empty: none
};

// Returns the command's file; nullopt: no YAML file in it has one of these keys at its top. A file with `deepspeed`
// goes before others, and so does one with a key that is tuned. Throws Error for two files with it, and for such a file
// that cannot be read.
std::optional<TrainingYaml> find_training_yaml(const Argv& argv, const LauncherUse& launcher,
                                               const std::filesystem::path& cwd,
                                               const std::vector<std::string>& tuned_keys = {});

// Returns the first YAML file in the command that does not exist; empty: none.
std::string missing_yaml(const Argv& argv, const LauncherUse& launcher, const std::filesystem::path& cwd);

// Returns the file's text with a trial's configuration and batch sizes.
std::string with_configuration(const TrainingYaml& yaml, const Json& config, const std::filesystem::path& config_file);

// Writes them into the words of the command that go before the file's values.
void follow_in_words(Argv& argv, const TrainingYaml& yaml, const Json& config,
                     const std::filesystem::path& config_file);

// Fills in batch sizes that the configuration leaves open, and the tuned keys, from the words and the file.
Json with_own_batch(const TrainingYaml& yaml, const Argv& argv, Json config);

// Returns "bf16" or "fp16" if the file turns it on; empty: neither.
std::string precision_of(const TrainingYaml& yaml);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_TRAINING_YAML_H_
