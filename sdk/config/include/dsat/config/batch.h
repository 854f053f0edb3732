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

// What a configuration says. Absent values and "auto" are nullopt; anything else but a positive integer is an Error.
struct GivenBatchSizes {
  std::optional<int64_t> micro_batch;
  std::optional<int64_t> accumulation;
  std::optional<int64_t> train_batch;
};
GivenBatchSizes read_batch_sizes(const Json& config);

// Throws Error for a triple that breaks the rule at `dp_size`, and for a pair that no integer completes.
void check_batch_sizes(const GivenBatchSizes& given, int64_t dp_size);

// Completes them as DeepSpeed does. If nothing is given, the micro batch is 1. Accumulation is the given value, else 1;
// if only train_batch and micro_batch are given, it follows from them.
BatchSizes complete_batch_sizes(const GivenBatchSizes& given, int64_t dp_size);

// A trial's triple. Accumulation is as given and train_batch follows. With `global_batch` the product is fixed and
// accumulation follows; an Error if global_batch is not a multiple of micro_batch x dp_size.
BatchSizes trial_batch_sizes(int64_t micro_batch, int64_t accumulation, int64_t dp_size,
                             std::optional<int64_t> global_batch);

// Writes all three keys.
void write_batch_sizes(Json& config, const BatchSizes& sizes);

// The tensor-parallel size under any of the names it goes by. Two names that disagree are an Error. Where the script
// divides the model itself (mp_size), each group of ranks has a batch of its own; in DeepSpeed's section
// tensor_parallel (AutoTP) the batch sizes count every rank.
struct TensorParallelism {
  int64_t size = 1;
  bool divides_batch = false;
};
TensorParallelism tensor_parallelism(const Json& config);

// By how much train_batch_size exceeds micro batch x accumulation: slots / (tensor-parallel size that divides the batch
// x sequence_parallel_size x pipeline.stages), as DeepSpeed counts from 0.17.0 on (docs/real-deepspeed.md). An Error
// when the slots are no multiple of all sizes, or the result is not the data_parallel_size that the configuration gives
// beside a sequence_parallel_size.
int64_t data_parallel_size(int64_t slots, const Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_BATCH_H_
