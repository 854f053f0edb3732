// Reads the `pipeline` section, and merges the program's own number of stages into it.
// Two different numbers are refused: nobody could know which one is meant.
#include "settings/pipeline_settings.h"

#include <fmt/format.h>

#include <string>

#include "base/config_reader.h"
#include "dsat/config/json.h"

namespace dsat::trainer {
namespace {

constexpr const char* kStages = "pipeline.stages";

}  // namespace

PipelineSettings read_pipeline(const Json& config) {
  PipelineSettings p;
  p.stages = static_cast<int>(read_integer(config, kStages, 1, 1, 1024));
  p.checkpoint_interval = read_integer(config, "pipeline.activation_checkpoint_interval", 0, 0, INT32_MAX);
  const std::string method = read_string(config, "pipeline.partition", "best");
  if (method == "uniform") {
    p.partition = PartitionMethod::uniform;
  } else if (method != "best" && method != "parameters") {
    throw Error(fmt::format("pipeline.partition is \"{}\"; dsat-trial has \"parameters\" and \"uniform\"", method));
  }
  return p;
}

void set_pipeline_stages(Json& config, int64_t stages, const std::string& who) {
  const int64_t given = read_integer(config, kStages, stages, 1, INT32_MAX);
  if (given != stages) {
    throw Error(fmt::format("{} {} contradicts {} {} of the configuration; leave one of them out", who, stages, kStages,
                            given));
  }
  config::set(config, kStages, stages);
}

}  // namespace dsat::trainer
