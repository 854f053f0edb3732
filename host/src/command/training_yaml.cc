// Tries the words that end in .yaml, .yml or .json, except the launcher's own. A file is one of training if it has a
// key that only such files have.
#include "command/training_yaml.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "command/hugging_face.h"
#include "command/own_launchers.h"
#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/base/numbers.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/yaml/yaml_copy.h"
#include "dsat/yaml/yaml_file.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxTrainingBytes = size_t{4} << 20;
constexpr const char* kConfigKey = "deepspeed";
constexpr const char* kAxolotlMicroBatch = "micro_batch_size";
constexpr const char* kTrainerMicroBatch = "per_device_train_batch_size";
constexpr const char* kAccumulation = "gradient_accumulation_steps";
// Keys that show the arguments of a Trainer, which has defaults for its batch sizes.
constexpr std::array kTrainerKeys{"output_dir", "num_train_epochs", "max_steps", "learning_rate", "model_name_or_path"};

// Whether a text that cannot be read is meant as such a file.
bool looks_like_training(const std::string& text) {
  static const RE2 kKey(R"re((?m)^[\s{"']*(deepspeed|micro_batch_size|per_device_train_batch_size|)re"
                        R"re(gradient_accumulation_steps)["']?\s*:)re");
  return RE2::PartialMatch(text, kKey);
}

// A JSON file may be DeepSpeed's configuration, which has the accumulation, too, or anything else.
bool is_json_of_training(const std::string& text) {
  static const RE2 kKey(R"re("(deepspeed|per_device_train_batch_size)"\s*:)re");
  return RE2::PartialMatch(text, kKey);
}

// The words that may name such a file: FILE, --config FILE, --config=FILE, config=FILE.
std::vector<FlagUse> file_words(const Argv& argv, const LauncherUse& launcher) {
  std::vector<FlagUse> uses;
  for (size_t i = launcher.kind == Launcher::none ? 0 : launcher.begin; i < argv.size(); ++i) {
    const bool is_launchers = !launcher.mixed && i < launcher.end;
    const std::string before = i > 0 ? with_underscores(argv[i - 1]) : "";
    const bool is_accelerates = launcher.mixed && (before == "--config_file" || before == "--accelerate_config");
    if ((!is_yaml_name(argv[i]) && !ends_with(argv[i], ".json")) || is_launchers || is_accelerates) continue;
    const size_t equals = argv[i].find('=');
    uses.push_back({i, i, equals == std::string::npos ? 0 : equals + 1});
  }
  if (!launcher.mixed || launcher.begin == 0) return uses;
  // axolotl's file stands before its other words.
  const size_t first = launcher.begin - 1;
  if (is_yaml_name(argv[first])) uses.insert(uses.begin(), FlagUse{first, first, 0});
  return uses;
}

std::optional<TrainingYaml> read_training_yaml(const Argv& argv, const LauncherUse& launcher, const FlagUse& use,
                                               const fs::path& cwd, const std::vector<std::string>& tuned_keys) {
  TrainingYaml training;
  training.use = use;
  training.file = cwd / use.read(argv);
  std::error_code error;
  if (!fs::is_regular_file(training.file, error)) return std::nullopt;
  FileText text = try_read_file(training.file, kMaxTrainingBytes);
  if (!text.ok()) return std::nullopt;
  training.text = std::move(text.bytes);
  if (training.is_json() && tuned_keys.empty() && !is_json_of_training(training.text)) return std::nullopt;
  std::optional<YamlFile> yaml;
  try {
    yaml = YamlFile::parse(training.text, training.file);
  } catch (const Error&) {
    if (!training.is_json() && looks_like_training(training.text)) throw;
    return std::nullopt;
  }
  training.root = yaml->root();
  if (!training.root.is_object()) return std::nullopt;
  const Json* config = yaml->find(kConfigKey);
  if (config != nullptr && !config->is_object() && !config->is_string()) {
    yaml->refuse(kConfigKey, fmt::format("is {}: name the configuration file", config->dump()));
  }
  training.config_place = yaml->where(kConfigKey);
  if (config != nullptr && config->is_object()) training.config = *config;
  if (config != nullptr && config->is_string()) training.config_name = *config;
  for (const char* key : {kAxolotlMicroBatch, kTrainerMicroBatch}) {
    if (training.micro_batch_key == nullptr && training.root.contains(key)) training.micro_batch_key = key;
  }
  const auto has = [&](const char* key) { return training.root.contains(key); };
  const bool has_batch = training.micro_batch_key != nullptr || has(kAccumulation);
  const bool is_trainers = std::count_if(kTrainerKeys.begin(), kTrainerKeys.end(), has) > 1;
  std::copy_if(tuned_keys.begin(), tuned_keys.end(), std::back_inserter(training.tuned), [&](const std::string& key) {
    const Json* value = config::find(training.root, key);
    return value != nullptr && !value->is_structured();
  });
  const bool is_tuned = !training.tuned.empty();
  if (!training.has_configuration() && !has_batch && !is_trainers && !is_tuned) return std::nullopt;
  const auto first = argv.begin() + static_cast<std::ptrdiff_t>(launcher.script());
  const auto script = std::find_if(first, argv.end(), is_python_script);  // behind Python, where there is no launcher
  training.takes_keys = training.has_configuration() || find_framework(argv) != Framework::none ||
                        runs_trainer(argv, static_cast<size_t>(script - argv.begin()), cwd);
  if (!has_batch && !training.takes_keys && !is_tuned) return std::nullopt;
  if (training.micro_batch_key == nullptr) training.micro_batch_key = kTrainerMicroBatch;
  return training;
}

// The keys of the file that follow the configuration, with their values.
std::vector<std::pair<std::string, Json>> values_of(const TrainingYaml& yaml, const Json& config,
                                                    const fs::path& config_file) {
  std::vector<std::pair<std::string, Json>> values;
  if (yaml.has_configuration()) values.emplace_back(kConfigKey, config_file.string());
  const auto add = [&](const char* key, const char* of_config) {
    const Json* value = config::find(config, of_config);
    const bool is_taken = yaml.takes_keys || yaml.root.contains(key);
    if (is_taken && value != nullptr && value->is_number()) values.emplace_back(key, *value);
  };
  add(yaml.micro_batch_key, config::kMicroBatchKey);
  add(kAccumulation, config::kAccumulationKey);
  for (const std::string& key : yaml.tuned) {
    const Json* value = config::find(config, key);
    if (value != nullptr && !value->is_structured()) values.emplace_back(key, *value);
  }
  return values;
}

// A word of the command goes before the file's value.
Json own_value(const TrainingYaml& yaml, const Argv& argv, const std::string& key) {
  const std::vector<FlagUse> words = find_mapped(argv, fmt::format("{}=", key));
  if (words.empty() || words.back().value >= argv.size()) return *config::find(yaml.root, key);
  const std::string text = words.back().read(argv);
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() || value.is_structured() ? Json(text) : value;
}

std::optional<int64_t> batch_number(const TrainingYaml& yaml, const Argv& argv, const char* key) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto number_of = [&](const std::vector<FlagUse>& uses) -> std::optional<std::string> {
    if (uses.empty() || uses.back().value >= argv.size()) return std::nullopt;
    return uses.back().read(argv);
  };
  std::optional<std::string> given = number_of(find_mapped(argv, fmt::format("{}=", key)));
  if (!given) given = number_of(find_flag_in_any_spelling(argv, fmt::format("--{}", key)));
  const std::string text = given ? *given : yaml.text_at(key);
  if (text.empty() && key == kTrainerMicroBatch && find_framework(argv) != Framework::swift) {
    return kTrainersMicroBatch;
  }
  return parse_integer(text, 1, kMost);
}

}  // namespace

std::string TrainingYaml::text_at(const char* key) const {
  const auto value = root.find(key);
  if (value == root.end() || value->is_null() || value->is_structured()) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

std::optional<TrainingYaml> find_training_yaml(const Argv& argv, const LauncherUse& launcher, const fs::path& cwd,
                                               const std::vector<std::string>& tuned_keys) {
  const auto weight = [](const TrainingYaml& yaml) {
    return (yaml.has_configuration() ? 2 : 0) + (yaml.tuned.empty() ? 0 : 1);
  };
  std::optional<TrainingYaml> found;
  for (const FlagUse& use : file_words(argv, launcher)) {
    std::optional<TrainingYaml> yaml = read_training_yaml(argv, launcher, use, cwd, tuned_keys);
    if (!yaml) continue;
    if (found && found->has_configuration() && yaml->has_configuration()) {
      throw Error(fmt::format("two files of the command name a configuration ({} and {}): leave one of the keys out",
                              found->config_place, yaml->config_place));
    }
    if (!found || weight(*yaml) > weight(*found)) found = std::move(yaml);
  }
  return found;
}

std::string missing_yaml(const Argv& argv, const LauncherUse& launcher, const fs::path& cwd) {
  for (const FlagUse& use : file_words(argv, launcher)) {
    const std::string name = use.read(argv);
    std::error_code error;
    if (is_yaml_name(name) && !fs::exists(cwd / name, error) && name.find('{') == std::string::npos) return name;
  }
  return "";
}

std::string with_configuration(const TrainingYaml& yaml, const Json& config, const fs::path& config_file) {
  if (yaml.is_json()) {
    Json root = yaml.root;
    for (const auto& [key, value] : values_of(yaml, config, config_file)) config::set(root, key, value);
    return config::text_of(root, 2) + "\n";
  }
  YamlCopy copy(yaml.text, yaml.file);
  for (const auto& [key, value] : values_of(yaml, config, config_file)) copy.set(key, value);
  // axolotl takes two of the three.
  const bool has_both = yaml.takes_keys || yaml.root.contains(kAccumulation);
  if (yaml.micro_batch_key == kAxolotlMicroBatch && has_both) copy.erase("batch_size");
  return copy.text();
}

void follow_in_words(Argv& argv, const TrainingYaml& yaml, const Json& config, const fs::path& config_file) {
  for (const auto& [key, value] : values_of(yaml, config, config_file)) {
    const std::optional<std::string> text = as_argument(&value);
    for (const FlagUse& use : find_mapped(argv, fmt::format("{}=", key))) use.write(argv, *text);
    if (yaml.micro_batch_key != kAxolotlMicroBatch || key == kConfigKey) continue;
    for (const FlagUse& use : find_flag_in_any_spelling(argv, fmt::format("--{}", key))) use.write(argv, *text);
  }
}

Json with_own_batch(const TrainingYaml& yaml, const Argv& argv, Json config) {
  const auto is_open = [&](const char* key) {
    const Json* value = config::find(config, key);
    return value == nullptr || *value == "auto";
  };
  for (const std::string& key : yaml.tuned) {
    if (config::find(config, key) == nullptr) config::set(config, key, own_value(yaml, argv, key));
  }
  const bool has_batch =
      yaml.takes_keys || yaml.root.contains(yaml.micro_batch_key) || yaml.root.contains(kAccumulation);
  if (!has_batch || !is_open(config::kTrainBatchKey)) return config;
  const auto fill = [&](const char* of_config, const char* key) {
    const auto number = is_open(of_config) ? batch_number(yaml, argv, key) : std::nullopt;
    if (number) config::set(config, of_config, *number);
  };
  fill(config::kMicroBatchKey, yaml.micro_batch_key);
  fill(config::kAccumulationKey, kAccumulation);
  return config;
}

std::string precision_of(const TrainingYaml& yaml) {
  for (const char* precision : {"bf16", "fp16"}) {
    const std::string value = yaml.text_at(precision);
    if (value == "true" || value == "full" || (value == "auto" && std::string(precision) == "bf16")) return precision;
  }
  return "";
}

}  // namespace dsat::host
