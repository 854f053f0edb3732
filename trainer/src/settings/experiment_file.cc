// Chooses the reader of an experiment file by its name.
// JSON keeps its own reader: it takes comments, and its messages are about JSON.
#include "settings/experiment_file.h"

#include <filesystem>

#include "dsat/config/json.h"
#include "dsat/yaml/yaml_file.h"

namespace dsat::trainer {

Json load_experiment(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".yaml" || extension == ".yml") return YamlFile::load(file).root();
  return config::load_file(file);
}

}  // namespace dsat::trainer
