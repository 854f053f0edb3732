// A rank's place in a model that is spread over several ranks: the data that it reads, and whether it reports.
//
// Threading: a value. Errors: none; TrialContext::set_mpu() checks it.
#ifndef DSAT_TRAINER_MPU_H_
#define DSAT_TRAINER_MPU_H_

#include <cstdint>

namespace dsat::trainer {

struct ModelParallelUnit {
  int64_t data_parallel_rank = 0;
  int64_t data_parallel_world_size = 1;
  bool should_report_metrics = true;     // this rank knows the loss: in a pipeline a rank of the last stage
  bool should_build_data_loader = true;  // this rank needs batches: in a pipeline a rank of the first or last stage
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MPU_H_
