// DeepSpeed's batch-size rule: train_batch_size = micro batch x accumulation x data-parallel size.
// Errors: dsat::Error, naming the keys and the numbers.
#ifndef DSAT_CONFIG_BATCH_H_
#define DSAT_CONFIG_BATCH_H_

#include <cstdint>
#include <optional>

#include "dsat/error.h"

namespace dsat::config {

inline constexpr const char* kMicroBatchKey = "train_micro_batch_size_per_gpu";
inline constexpr const char* kAccumulationKey = "gradient_accumulation_steps";
inline constexpr const char* kTrainBatchKey = "train_batch_size";
inline constexpr const char* kSequenceParallelKey = "sequence_parallel_size";
inline constexpr const char* kDataParallelKey = "data_parallel_size";

struct BatchSizes {
  int64_t micro_batch = 1;   // samples per device and micro step
  int64_t accumulation = 1;  // micro steps per optimizer step
  int64_t train_batch = 1;   // samples per optimizer step, all devices
};

// The batch sizes in a configuration. Absent or "auto": nullopt. Anything else but a positive integer is an Error.
struct GivenBatchSizes {
  std::optional<int64_t> micro_batch;
  std::optional<int64_t> accumulation;
  std::optional<int64_t> train_batch;
};
GivenBatchSizes read_batch_sizes(const Json& config);

// Throws Error for three sizes that break the rule at `dp_size`, and for two that no third integer completes.
void check_batch_sizes(const GivenBatchSizes& given, int64_t dp_size);

// Completes the sizes as DeepSpeed does: the default of micro batch and accumulation is 1, and with train_batch and
// micro_batch alone, accumulation follows from them.
BatchSizes complete_batch_sizes(const GivenBatchSizes& given, int64_t dp_size);

// The sizes at `dp_size` of a configuration that was written for another number of devices: micro batch and
// accumulation stand, a missing one is as large as the train batch allows, and train_batch follows. Equals
// complete_batch_sizes() if the rule holds. An Error if the sizes make the rule true at no number of devices.
BatchSizes fit_batch_sizes(const GivenBatchSizes& given, int64_t dp_size);

// The sizes of a trial. train_batch follows from the others. With `global_batch` train_batch is fixed and accumulation
// follows; an Error if global_batch is not a multiple of micro_batch x dp_size.
BatchSizes trial_batch_sizes(int64_t micro_batch, int64_t accumulation, int64_t dp_size,
                             std::optional<int64_t> global_batch);

// Writes all three keys.
void write_batch_sizes(Json& config, const BatchSizes& sizes);

// The tensor-parallel size under any of its names. Two names that disagree are an Error. If the script divides the
// model itself (mp_size), a batch belongs to a group of ranks; in DeepSpeed's section tensor_parallel (AutoTP) batch
// sizes count every rank.
struct TensorParallelism {
  int64_t size = 1;
  bool divides_batch = false;
};
TensorParallelism tensor_parallelism(const Json& config);

// train_batch_size / (micro batch x accumulation) = slots / (tensor-parallel size that divides the batch x
// sequence_parallel_size x pipeline.stages), as DeepSpeed counts from 0.17.0 on (docs/real-deepspeed.md). An Error if
// the slots are no multiple of these sizes, or if the configuration gives another data_parallel_size beside a
// sequence_parallel_size.
int64_t data_parallel_size(int64_t slots, const Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_BATCH_H_
