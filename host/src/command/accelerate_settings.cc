// Reads a few keys of the settings file, which is YAML (JSON is YAML too). The copy keeps the spelling of the rest,
// because accelerate has other rules than our reader (`no` is false).
#include "command/accelerate_settings.h"

#include <fmt/format.h>

#include "base/python_packages.h"
#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "dsat/yaml/yaml_copy.h"
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

// trl names a file, or one of its package.
fs::path trl_settings_file(const std::string& name, const std::string& program, const fs::path& cwd,
                           const Environment& environment) {
  std::error_code error;
  if (fs::is_regular_file(cwd / name, error)) return name;
  const std::string preset = fmt::format("trl/accelerate_configs/{}.yaml", name);
  return find_in_packages({preset}, program, cwd, environment).value_or(name);
}

fs::path settings_file(const Argv& argv, const LauncherUse& launcher, const fs::path& cwd,
                       const Environment& environment, const std::string& named) {
  if (const auto file = launcher_value(argv, launcher, {"--config_file", "--config-file"})) return *file;
  if (!launcher.mixed) return {};
  const std::string of_trl = launcher_value(argv, launcher, {"--accelerate_config"}).value_or(named);
  return of_trl.empty() ? fs::path() : trl_settings_file(of_trl, argv[launcher.begin - 2], cwd, environment);
}

std::string text_at(const YamlFile& yaml, const std::string& key) {
  const Json* value = yaml.find(key);
  return value == nullptr || value->is_structured() ? "" : yaml.text(key);
}

void read_values(const YamlFile& yaml, AccelerateSettings& settings) {
  const Json* count = yaml.find("num_processes");
  constexpr int kMost = 1 << 20;
  if (count != nullptr && count->is_number_integer() && *count >= 1 && *count <= kMost) {
    settings.num_processes = count->get<int>();
  }
  settings.distributed_type = text_at(yaml, "distributed_type");
  settings.mixed_precision = text_at(yaml, "mixed_precision");
  if (const Json* section = yaml.find(kSection); section != nullptr && section->is_object())
    settings.section = *section;
  settings.deepspeed_config_file = yaml.text(fmt::format("{}.deepspeed_config_file", kSection));
}

}  // namespace

AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher, const fs::path& cwd,
                                            const Environment& environment, const std::string& named) {
  AccelerateSettings settings;
  if (launcher.kind != Launcher::accelerate) return settings;
  fs::path name = settings_file(argv, launcher, cwd, environment, named);
  const bool is_named = !name.empty();
  if (!is_named && !launcher_switch(argv, launcher, "--cpu")) name = default_file(environment);
  std::error_code error;
  if (name.empty() || (!is_named && !fs::is_regular_file(cwd / name, error))) return settings;
  const fs::path file = cwd / name;
  try {
    const YamlFile yaml = YamlFile::load(file);
    settings.file = file;
    settings.text = try_read_file(file, kMaxSettingsBytes).bytes;
    read_values(yaml, settings);
  } catch (const Error& why) {  // the values read before the error are kept
    settings.problem = why.what();
  }
  return settings;
}

std::string place_in(const AccelerateSettings& settings, const std::string& key) {
  return YamlFile::parse(settings.text, settings.file).where(key);
}

std::optional<std::string> changed_settings(const AccelerateSettings& settings, const SettingsChanges& changes) {
  if (settings.file.empty()) return std::nullopt;
  const YamlFile yaml = YamlFile::parse(settings.text, settings.file);
  YamlCopy copy(settings.text, settings.file);
  bool changes_any = false;
  for (const auto& [key, value] : changes) {
    const Json* own = config::find(yaml.root(), key);
    if (own == nullptr && value.is_null()) continue;
    changes_any = true;
    if (value.is_null()) {
      copy.erase(key);
    } else {
      copy.set(key, value);
    }
  }
  return changes_any ? std::optional(copy.text()) : std::nullopt;
}

}  // namespace dsat::host
