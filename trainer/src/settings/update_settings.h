// The sections of a DeepSpeed configuration that decide an update: optimizer, fp16, offload_optimizer;
// schedule_settings.h has the scheduler.
//
// Errors: dsat::Error, one line that names the key. Threading: pure functions.
#ifndef DSAT_TRAINER_SETTINGS_UPDATE_SETTINGS_H_
#define DSAT_TRAINER_SETTINGS_UPDATE_SETTINGS_H_

#include <string>
#include <vector>

#include "dsat/error.h"
#include "optimizer/loss_scaler.h"
#include "optimizer/optimizer.h"

namespace dsat::trainer {

OptimizerSettings read_optimizer(const Json& config);
// Enabled with fp16.
LossScaleSettings read_loss_scale(const Json& config);
// Whether states go to host memory; other devices are refused.
bool offloads_optimizer(const Json& config);

// Refuses fp16 unless bf16 may run in its place.
void refuse_fp16(const Json& config);

// One line for each key of these sections that has no effect here and would have one elsewhere.
void warn_of_update_settings(const Json& config, std::vector<std::string>& warnings);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_UPDATE_SETTINGS_H_
