// Merges the mappings of the configuration's autotuning section with those of the options.
// Keys are checked against DeepSpeed's, flags by their form; stray white space is dropped with a notice.
#include "command/arg_mappings.h"

#include <fmt/format.h>

#include <algorithm>

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

ArgMappings read_section(const Json& section, const std::string& where, std::vector<std::string>& notices) {
  ArgMappings mappings;
  if (section.is_null()) return mappings;
  if (!section.is_object()) {
    throw Error(fmt::format(R"({} is {}: write {{"KEY": "--FLAG", ...}})", where, section.dump()));
  }
  for (const auto& [key, value] : section.items()) {
    const std::string flag = value.is_string() ? trimmed(value.get<std::string>()) : "";
    if (flag.size() < 2 || flag[0] != '-') {
      throw Error(fmt::format(R"({}: '{}' is mapped to {}: name a flag of the command, such as "--batch_size")", where,
                              key, value.dump()));
    }
    const std::string plain = trimmed(key);
    if (plain.empty()) throw Error(where + ": a key is empty: name a key of the configuration");
    if (plain != key) {
      notices.push_back(fmt::format("{}: the key '{}' has stray white space: taken for '{}'", where, key, plain));
    }
    put(mappings, plain, flag);
  }
  return mappings;
}

// A mapping of a key that no trial's configuration has would have no effect, and nobody would notice.
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

}  // namespace

ArgMappings merge_arg_mappings(const Json& user_config, const Json& space_file,
                               const std::filesystem::path& config_file, const ArgMappings& options,
                               std::vector<std::string>& notices) {
  const Json* section = config::find(user_config, kMappingsKey);
  ArgMappings mappings;
  if (section != nullptr) mappings = read_section(*section, config_file.string() + ": " + kMappingsKey, notices);
  for (const auto& [key, flag] : options) put(mappings, key, flag);
  for (const auto& [key, flag] : mappings) check_key(key, flag, user_config, space_file);
  return mappings;
}

}  // namespace dsat::host
