// Recognises the Trainer by its options and rewrites its batch flags, --per_device_train_batch_size and
// --gradient_accumulation_steps.
#include "command/hugging_face.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <system_error>

#include "command/launchers.h"
#include "command/own_launchers.h"
#include "dsat/base/files.h"
#include "dsat/base/numbers.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr const char* kMicroBatchFlag = "--per_device_train_batch_size";
constexpr const char* kAccumulationFlag = "--gradient_accumulation_steps";

std::vector<FlagUse> micro_batch_flags(const Argv& argv) { return find_flag_in_any_spelling(argv, kMicroBatchFlag); }
std::vector<FlagUse> accumulation_flags(const Argv& argv) { return find_flag_in_any_spelling(argv, kAccumulationFlag); }

bool is_of_script(const std::vector<FlagUse>& uses, size_t script) {
  return std::any_of(uses.begin(), uses.end(), [script](const FlagUse& use) { return use.flag >= script; });
}

// Returns a number of at least 1; the last use counts.
std::optional<int64_t> flag_number(const Argv& argv, const std::vector<FlagUse>& uses) {
  if (uses.empty() || uses.back().value >= argv.size()) return std::nullopt;
  constexpr int64_t kMost = int64_t{1} << 40;
  return parse_integer(uses.back().read(argv), 1, kMost);
}

// Accepts "--bf16" alone or with a word that Hugging Face's parser reads as true. A word that is not one of its words
// for false is the script's next argument.
bool switches_on(const Argv& argv, const FlagUse& use) {
  if (use.value >= argv.size()) return true;
  std::string word = use.read(argv);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word != "false" && word != "f" && word != "no" && word != "n" && word != "0";
}

std::string truth_as(bool value, const std::string& given) {
  constexpr const char* kSpellings[][2] = {{"false", "true"}, {"0", "1"}, {"no", "yes"}, {"off", "on"}};
  for (const auto& words : kSpellings) {
    if (given == words[0] || given == words[1]) return words[value ? 1 : 0];
  }
  return value ? "True" : "False";
}

void write_all(Argv& argv, const std::vector<FlagUse>& uses, const std::optional<std::string>& value) {
  for (const FlagUse& use : uses) {
    if (value) use.write(argv, *value);
  }
}

}  // namespace

std::optional<std::string> as_argument(const Json* value, const std::string& given) {
  if (value == nullptr || value->is_null() || (value->is_string() && *value == "auto")) return std::nullopt;
  if (value->is_boolean()) return truth_as(*value, given);
  return value->is_string() ? value->get<std::string>() : value->dump();
}

bool is_batch_flag(const std::string& flag) {
  const std::string plain = with_underscores(flag);
  return plain == kMicroBatchFlag || plain == kAccumulationFlag;
}

std::vector<FlagUse> batch_flags(const Argv& argv) {
  std::vector<FlagUse> uses = micro_batch_flags(argv);
  for (const FlagUse& use : accumulation_flags(argv)) uses.push_back(use);
  return uses;
}

Trainer find_trainer(const Argv& argv, size_t script, bool deepspeed_takes_file) {
  const bool has_batch_flags = is_of_script(batch_flags(argv), script);
  if (has_batch_flags) return deepspeed_takes_file ? Trainer::hugging_face : Trainer::batch_flags;
  if (!deepspeed_takes_file) return Trainer::other;
  for (size_t i = script; i < argv.size(); ++i) {
    const std::string flag = with_underscores(argv[i].substr(0, argv[i].find('=')));
    for (const char* only_theirs :
         {"--output_dir", "--do_train", "--model_name_or_path", "--per_device_eval_batch_size",
          "--overwrite_output_dir", "--num_train_epochs", "--evaluation_strategy", "--eval_strategy"}) {
      if (flag == only_theirs) return Trainer::hugging_face;
    }
  }
  return Trainer::other;
}

bool runs_trainer(const Argv& argv, size_t script, const std::filesystem::path& cwd) {
  constexpr size_t kLargestScript = size_t{4} << 20;
  if (find_framework(argv) == Framework::trl) return true;
  std::error_code error;
  if (script >= argv.size() || !std::filesystem::is_regular_file(cwd / argv[script], error)) {
    const bool takes_file = true;  // its configuration is accelerate's
    return find_trainer(argv, script, takes_file) == Trainer::hugging_face;
  }
  const std::string text = try_read_file(cwd / argv[script], kLargestScript).bytes;
  for (const char* parser : {"HfArgumentParser", "TrlParser", "H4ArgumentParser"}) {
    if (text.find(parser) != std::string::npos) return true;
  }
  return false;
}

config::GivenBatchSizes with_batch_flags(const Argv& argv, bool hugging_face, const ArgMappings& mappings,
                                         config::GivenBatchSizes given) {
  if (hugging_face) {
    const auto micro_batch = flag_number(argv, micro_batch_flags(argv));
    const auto accumulation = flag_number(argv, accumulation_flags(argv));
    // The Trainer refuses flags that contradict the file's train batch, so such flags are ignored.
    const auto divides = [&] {  // divides twice, since the product may overflow
      const int64_t batch = *given.train_batch;
      return batch % *micro_batch == 0 && batch / *micro_batch % *accumulation == 0;
    };
    const bool fits = !given.train_batch || (micro_batch && accumulation && divides());
    if (fits && !given.micro_batch) given.micro_batch = micro_batch;
    if (fits && !given.accumulation) given.accumulation = accumulation;
  }
  const auto complete = [&](const char* wanted, std::optional<int64_t>& size) {
    for (const auto& [key, flag] : mappings) {
      if (key == wanted && !size) size = flag_number(argv, find_mapped(argv, flag));
    }
  };
  complete(config::kMicroBatchKey, given.micro_batch);
  complete(config::kAccumulationKey, given.accumulation);
  if (!given.micro_batch || !given.accumulation) complete(config::kTrainBatchKey, given.train_batch);
  return given;
}

Json with_default_batch(const Argv& argv, Json config) {
  const Json* micro_batch = config::find(config, config::kMicroBatchKey);
  const Json* train_batch = config::find(config, config::kTrainBatchKey);
  const bool is_open = micro_batch != nullptr && *micro_batch == "auto";
  const bool is_fixed = train_batch != nullptr && train_batch->is_number();
  if (is_open && !is_fixed && micro_batch_flags(argv).empty()) {
    config::set(config, config::kMicroBatchKey, kTrainersMicroBatch);
  }
  return config;
}

std::string precision_of_flags(const Argv& argv) {
  for (const char* precision : {"bf16", "fp16"}) {
    const std::vector<FlagUse> uses = find_flag(argv, std::string("--") + precision);
    if (!uses.empty() && switches_on(argv, uses.back())) return precision;
  }
  const std::vector<FlagUse> mixed = find_flag_in_any_spelling(argv, "--mixed_precision");
  if (mixed.empty() || mixed.back().value >= argv.size()) return "";
  const std::string value = mixed.back().read(argv);
  return value == "bf16" || value == "fp16" ? value : "";
}

Json with_precision(Json config, const std::string& precision) {
  if (precision.empty() || !config.is_object()) return config;
  bool open = true;
  for (const char* section : {"bf16", "bfloat16", "fp16"}) {
    const Json* given = config::find(config, section);
    if (given == nullptr || given->is_null()) continue;
    open = false;
    const std::string key = std::string(section) + ".enabled";
    const Json* enabled = config::find(config, key);
    if (enabled != nullptr && *enabled == "auto") config::set(config, key, precision == section);
  }
  if (open) config::set(config, precision + ".enabled", true);
  return config;
}

bool has_auto_batch_size(const Json& config) {
  const char* keys[] = {config::kMicroBatchKey, config::kAccumulationKey, config::kTrainBatchKey};
  return std::any_of(std::begin(keys), std::end(keys), [&](const char* key) {
    const Json* value = config::find(config, key);
    return value != nullptr && *value == "auto";
  });
}

void follow_configuration(Argv& argv, size_t script, Trainer trainer, const Json& config, const ArgMappings& mappings) {
  if (trainer == Trainer::other) return;
  const auto micro_batch = as_argument(config::find(config, config::kMicroBatchKey));
  const auto accumulation = as_argument(config::find(config, config::kAccumulationKey));
  const auto micro_uses = micro_batch_flags(argv), accumulation_uses = accumulation_flags(argv);
  write_all(argv, micro_uses, micro_batch);
  write_all(argv, accumulation_uses, accumulation);
  const auto is_mapped = [&](const char* key) {
    return std::any_of(mappings.begin(), mappings.end(),
                       [key](const auto& mapping) { return mapping.first == key && !is_batch_flag(mapping.second); });
  };
  const bool has_micro_batch = is_of_script(micro_uses, script);
  const Framework framework = find_framework(argv);
  const bool complete = trainer == Trainer::hugging_face && (framework != Framework::none || starts_python(argv));
  if (!has_micro_batch && complete && micro_batch && !is_mapped(config::kMicroBatchKey)) {
    argv.insert(argv.end(), {kMicroBatchFlag, *micro_batch});
  }
  // Without the flag swift accumulates to 16 samples.
  const bool is_needed = accumulation && (*accumulation != "1" || framework == Framework::swift) &&
                         !is_mapped(config::kAccumulationKey);
  if (!is_of_script(accumulation_uses, script) && (complete || has_micro_batch) && is_needed) {
    argv.insert(argv.end(), {kAccumulationFlag, *accumulation});
  }
}

}  // namespace dsat::host
