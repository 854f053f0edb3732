// Merges the mappings of the configuration's autotuning section with those of the options. Keys are checked against
// DeepSpeed's. Flags are checked by their form and by the word after them. White space around both is dropped with a
// notice.
#include "command/arg_mappings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "command/launchers.h"
#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::host {

namespace {

constexpr const char* kMappingsKey = "autotuning.arg_mappings";

std::string trimmed(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  const size_t end = text.find_last_not_of(kBlank);
  return begin == text.size() ? "" : text.substr(begin, end + 1 - begin);
}

void put(ArgMappings& mappings, const std::string& key, const std::string& flag) {
  const auto same = std::find_if(mappings.begin(), mappings.end(), [&](const auto& m) { return m.first == key; });
  if (same == mappings.end()) {
    mappings.emplace_back(key, flag);
  } else {
    same->second = flag;
  }
}

// DeepSpeed appends a name without dashes to the command, where no argument parser would find it.
std::string with_dashes(const std::string& flag, const std::string& where, const std::string& key,
                        std::vector<std::string>& notices) {
  if (flag[0] == '-' || is_word_name(flag)) return flag;
  notices.push_back(fmt::format("{}: '{}' is mapped to '{}': read as the flag --{}", where, key, flag, flag));
  return "--" + flag;
}

ArgMappings read_section(const Json& section, const std::string& where, std::vector<std::string>& notices) {
  ArgMappings mappings;
  if (section.is_null()) return mappings;
  if (!section.is_object()) {
    throw Error(fmt::format(R"({} is {}: write {{"KEY": "--FLAG", ...}})", where, section.dump()));
  }
  for (const auto& [key, value] : section.items()) {
    const std::string flag = value.is_string() ? trimmed(value.get<std::string>()) : "";
    if (flag.empty() || flag == "-" || flag == "--" || flag.find_first_of(" \t\r\n") != std::string::npos ||
        (flag.find('=') != std::string::npos && !is_word_name(flag))) {
      throw Error(fmt::format(R"({}: '{}' is mapped to {}: name a flag of the command, such as "--batch_size")", where,
                              key, value.dump()));
    }
    const std::string plain = trimmed(key);
    if (plain.empty()) throw Error(where + ": a key is empty: name a key of the configuration");
    if (plain != key) {
      notices.push_back(fmt::format("{}: the key '{}' has stray white space: read as '{}'", where, key, plain));
    }
    put(mappings, plain, with_dashes(flag, where, plain, notices));
  }
  return mappings;
}

// A mapping of a key that no trial's configuration has would have no effect, and nobody would notice it.
void check_key(const std::string& key, const std::string& flag, const Json& user_config, const Json& space_file) {
  const bool tuned = space_file.is_object() && space_file.contains(key);
  if (tuned || config::find(user_config, key) != nullptr) return;
  Json wanted = Json::object();
  config::set(wanted, key, nullptr);
  for (const config::UnknownKey& unknown : config::unknown_keys(wanted)) {
    const std::string where = fmt::format("--arg-mapping {}={}: ", key, flag);
    if (!unknown.suggestion.empty()) {
      throw Error(fmt::format("{}unknown key '{}': did you mean '{}'?", where, key, unknown.suggestion));
    }
    throw Error(
        fmt::format("{}neither DeepSpeed nor the configuration has a key '{}': name one such as "
                    "train_micro_batch_size_per_gpu, or add it to the configuration",
                    where, key));
  }
}

enum class ValueKind { number, boolean, text, none };

ValueKind kind_of(const Json& value) {
  if (value.is_number()) return ValueKind::number;
  if (value.is_boolean()) return ValueKind::boolean;
  return value.is_string() && value != "auto" ? ValueKind::text : ValueKind::none;
}

// Returns the type of a key's values; none: no trial has the key.
ValueKind kind_of_key(const std::string& key, const Json& user_config, const config::Space& space) {
  for (const char* batch : {config::kMicroBatchKey, config::kAccumulationKey, config::kTrainBatchKey}) {
    if (key == batch) return ValueKind::number;
  }
  for (const config::StageSpace& stage : space.stages) {
    for (const config::Axis& axis : stage.axes) {
      if (axis.key == key) return kind_of(axis.values.front());
    }
  }
  const Json* given = config::find(user_config, key);
  return given == nullptr ? ValueKind::none : kind_of(*given);
}

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-' && !parse_number(word); }

bool is_boolean_word(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* known : {"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "0", "1", "none"}) {
    if (word == known) return true;
  }
  return false;
}

// Returns what the word after a flag would have to be; nullptr: the word can be the flag's value.
const char* wanted_instead_of(const std::string& word, ValueKind kind) {
  if (is_flag(word)) return "a value";
  if (word == "auto") return nullptr;
  if (kind == ValueKind::number) return parse_number(word) ? nullptr : "a number";
  return kind == ValueKind::boolean && !is_boolean_word(word) ? "true or false" : nullptr;
}

// The parts of a flag's name: --train-batch_size has train, batch and size.
std::vector<std::string> parts_of(const std::string& flag) {
  std::string name = with_underscores(flag.substr(flag.find_first_not_of('-')));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return split(name, '_');
}

bool is_name_for(const std::string& key, const std::vector<std::string>& parts) {
  const auto has = [&](std::initializer_list<const char*> words) {
    return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return std::find(words.begin(), words.end(), part) != words.end();
    });
  };
  if (has({"eval", "valid", "validation", "val", "test", "predict"})) return false;
  if (key == config::kMicroBatchKey) {
    return has({"batch", "batchsize", "bs", "bsz", "mbs", "b"}) && !has({"accumulation", "accum", "gas", "global"});
  }
  if (key == config::kAccumulationKey) return has({"accumulation", "accum", "gas", "ga", "accumulate"});
  return key == "zero_optimization.stage" && has({"stage"});
}

}  // namespace

ArgMappings merge_arg_mappings(const Json& user_config, const Json& space_file,
                               const std::filesystem::path& config_file, const ArgMappings& options,
                               std::vector<std::string>& notices) {
  const Json* section = config::find(user_config, kMappingsKey);
  ArgMappings mappings;
  if (section != nullptr) mappings = read_section(*section, config_file.string() + ": " + kMappingsKey, notices);
  for (const auto& [key, flag] : options) put(mappings, key, with_dashes(flag, "--arg-mapping", key, notices));
  for (const auto& [key, flag] : mappings) check_key(key, flag, user_config, space_file);
  return mappings;
}

void check_mapped_flags(const Argv& command, const ArgMappings& mappings, const Json& user_config,
                        const config::Space& space) {
  for (const auto& [key, flag] : mappings) {
    const ValueKind kind = kind_of_key(key, user_config, space);
    if (kind == ValueKind::none) continue;
    for (const FlagUse& use : find_mapped(command, flag)) {
      if (use.flag == use.value || use.value >= command.size()) continue;
      const std::string word = use.read(command);
      const char* wanted = wanted_instead_of(word, kind);
      if (wanted == nullptr) continue;
      throw Error(
          fmt::format("the argument mapping of {0} names {1}, but '{2}' behind it is not {3}: a trial would overwrite "
                      "it; give {1} a value in the command, or remove the mapping",
                      key, command[use.flag], word, wanted));
    }
  }
}

ArgMappings megatron_flags(const Argv& command) {
  constexpr int64_t kMostSamples = int64_t{1} << 40;
  const struct {
    const char *key, *flag;
    int64_t low, high;
  } kFlags[] = {{"zero_optimization.stage", "--zero_stage", 0, 3},
                {config::kMicroBatchKey, "--micro_batch_size", 1, kMostSamples},
                {config::kTrainBatchKey, "--global_batch_size", 1, kMostSamples}};
  const size_t script = find_launcher(command).end;
  ArgMappings mappings;
  for (const auto& [key, flag, low, high] : kFlags) {
    for (const FlagUse& use : find_flag_in_any_spelling(command, flag)) {
      const bool is_number = use.value < command.size() && parse_integer(use.read(command), low, high);
      if (use.flag < script || !is_number) continue;
      mappings.emplace_back(key, command[use.flag].substr(0, command[use.flag].find('=')));
      break;
    }
  }
  return mappings;
}

std::string flag_for_key(const Argv& command, const std::string& key, std::optional<int64_t> value) {
  std::string by_name;
  for (size_t i = find_launcher(command).end; i < command.size(); ++i) {
    const std::string& word = command[i];
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    if (flag.find_first_not_of('-') == std::string::npos || flag[0] != '-' || !is_name_for(key, parts_of(flag)))
      continue;
    const bool is_attached = equals != std::string::npos;
    if (!is_attached && i + 1 == command.size()) continue;
    const auto number = parse_integer(is_attached ? word.substr(equals + 1) : command[i + 1]);
    if (!number) continue;
    if (value && *number == *value) return flag;
    by_name = flag;
  }
  return by_name;
}

}  // namespace dsat::host
