// Reads two keys of the settings file, which is YAML, or JSON and so YAML too.
#include "command/accelerate_settings.h"

#include "dsat/error.h"
#include "dsat/yaml/yaml_file.h"

namespace dsat::host {

AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher,
                                            const std::filesystem::path& cwd) {
  AccelerateSettings settings;
  if (launcher.kind != Launcher::accelerate) return settings;
  const auto file = launcher_value(argv, launcher, {"--config_file", "--config-file"});
  std::error_code error;
  if (!file || !std::filesystem::is_regular_file(cwd / *file, error)) return settings;
  try {
    const YamlFile yaml = YamlFile::load(cwd / *file);
    const Json* count = yaml.find("num_processes");
    constexpr int kMost = 1 << 20;
    if (count != nullptr && count->is_number_integer() && *count >= 1 && *count <= kMost) {
      settings.num_processes = count->get<int>();
    }
    settings.deepspeed_config_file = yaml.text("deepspeed_config.deepspeed_config_file");
  } catch (const Error&) {  // what was read so far holds
  }
  return settings;
}

}  // namespace dsat::host
