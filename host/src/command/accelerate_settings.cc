// Reads two keys of the settings file, which is YAML (JSON is YAML too). The text is changed in place, because
// accelerate has other rules than our reader (`no` is false) and must read the rest unchanged.
#include "command/accelerate_settings.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "dsat/yaml/yaml_file.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSettingsBytes = 1 << 20;
constexpr const char* kSection = "deepspeed_config";

// Returns ~/.cache/huggingface/accelerate/default_config.yaml, unless a variable names another place.
fs::path default_file(const Environment& environment) {
  const auto variable = [&](const char* name) { return get_variable(environment, name); };
  std::string cache = variable("HF_HOME").value_or(
      (fs::path(variable("XDG_CACHE_HOME").value_or("~/.cache")) / "huggingface").string());
  if (cache == "~" || cache.rfind("~/", 0) == 0) cache.replace(0, 1, variable("HOME").value_or("~"));
  return fs::path(cache) / "accelerate" / "default_config.yaml";
}

fs::path settings_file(const Argv& argv, const LauncherUse& launcher, const Environment& environment) {
  if (const auto file = launcher_value(argv, launcher, {"--config_file", "--config-file"})) return *file;
  return launcher_switch(argv, launcher, "--cpu") ? fs::path() : default_file(environment);
}

// Sets the value of a key, in YAML or JSON, also of a key without a value.
std::string with_value(std::string text, const std::string& key, const std::string& value) {
  constexpr const char* kValue = R"re("[^"\n]*"|'[^'\n]*'|[^\s"',}#]([^\n,}#]*[^\s,}#])?)re";
  const RE2 entry(fmt::format(R"re((\b{}["']?[ \t]*:)[ \t]*({})?)re", key, kValue));
  std::string quoted;
  for (const char c : Json(value).dump()) quoted += c == '\\' ? "\\\\" : std::string(1, c);
  RE2::GlobalReplace(&text, entry, "\\1 " + quoted);
  return text;
}

}  // namespace

AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher, const fs::path& cwd,
                                            const Environment& environment) {
  AccelerateSettings settings;
  if (launcher.kind != Launcher::accelerate) return settings;
  const fs::path name = settings_file(argv, launcher, environment), file = cwd / name;
  std::error_code error;
  if (name.empty() || !fs::is_regular_file(file, error)) return settings;
  const FileText text = try_read_file(file, kMaxSettingsBytes);
  if (!text.ok()) return settings;
  try {
    const YamlFile yaml = YamlFile::parse(text.bytes, file);
    settings.file = file;
    settings.text = text.bytes;
    const Json* count = yaml.find("num_processes");
    constexpr int kMost = 1 << 20;
    if (count != nullptr && count->is_number_integer() && *count >= 1 && *count <= kMost) {
      settings.num_processes = count->get<int>();
    }
    settings.deepspeed_config_file = yaml.text(fmt::format("{}.deepspeed_config_file", kSection));
  } catch (const Error&) {  // the values read before the error are kept
  }
  return settings;
}

std::optional<std::string> changed_settings(const AccelerateSettings& settings,
                                            const std::vector<std::pair<std::string, std::string>>& values) {
  if (settings.file.empty()) return std::nullopt;
  const YamlFile yaml = YamlFile::parse(settings.text, settings.file);
  Json wanted = yaml.root();
  std::string text = settings.text;
  for (const auto& [key, value] : values) {
    if (!wanted.contains(kSection) || !wanted[kSection].is_object() || !wanted[kSection].contains(key)) continue;
    wanted[kSection][key] = value;
    text = with_value(std::move(text), key, value);
  }
  if (wanted == yaml.root()) return std::nullopt;
  try {
    if (YamlFile::parse(text, settings.file).root() == wanted) return text;
  } catch (const Error&) {  // reported below
  }
  throw Error(
      fmt::format("{}: a trial needs another file there, and this entry cannot be changed: write it on its own "
                  "line, as deepspeed_config_file: \"FILE\"",
                  yaml.where(fmt::format("{}.deepspeed_config_file", kSection))));
}

}  // namespace dsat::host
