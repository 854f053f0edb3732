// The `pipeline` section of a configuration.
//
// DeepSpeed has no `stages` and `partition` there; both are keys of dsat's own. Errors: dsat::Error, one line that
// names the key. Threading: pure functions.
#ifndef DSAT_TRAINER_SETTINGS_PIPELINE_SETTINGS_H_
#define DSAT_TRAINER_SETTINGS_PIPELINE_SETTINGS_H_

#include <cstdint>

#include "dsat/error.h"
#include "dsat/trainer/partition_method.h"

namespace dsat::trainer {

struct PipelineSettings {
  int stages = 1;  // 1: no pipeline
  PartitionMethod partition = PartitionMethod::parameters;
  // Layers that are recomputed together, with one stage too; 0: none are, unless the script says so.
  int64_t checkpoint_interval = 0;
};

PipelineSettings read_pipeline(const Json& config);

// What the program asks for, into a configuration that must not say another. `who`: "--pipeline-stages", say.
void set_pipeline_stages(Json& config, int64_t stages, const std::string& who);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_PIPELINE_SETTINGS_H_
