#include "dsat/config/batch.h"

#include <array>
#include <limits>
#include <string>

#include "dsat/config/json.h"
#include "values.h"

namespace dsat::config {
namespace {

// Products of three sizes that a person typed may leave 64 bits; a wrapped one would look valid.
int64_t multiply(int64_t a, int64_t b) {
  if (a > std::numeric_limits<int64_t>::max() / b) {
    throw Error("batch sizes too large: " + std::to_string(a) + " x " + std::to_string(b) + " exceeds 64 bits");
  }
  return a * b;
}

void require_positive(int64_t value, const char* what) {
  if (value < 1) throw Error(std::string(what) + " is " + std::to_string(value) + "; it must be at least 1");
}

std::string term(const char* key, int64_t value) { return std::string(key) + " " + std::to_string(value); }

std::string with_dp(const std::string& terms, int64_t dp_size) {
  return terms + " x data-parallel size " + std::to_string(dp_size);
}

// train_batch_size must be whole multiples of what the other sizes already fix.
void require_multiple(int64_t train_batch, int64_t unit, const std::string& unit_terms) {
  if (train_batch % unit == 0) return;
  throw Error("contradictory batch sizes: " + term(kTrainBatchKey, train_batch) + " is not a multiple of " +
              unit_terms + " = " + std::to_string(unit) + "; change one of them or set it to \"auto\"");
}

// Tensor-parallel size under any of the names it goes by. Two names that disagree are an Error.
int64_t tensor_parallel_size(const Json& config) {
  constexpr std::array<const char*, 5> kKeys = {"tensor_parallel.autotp_size", "tensor_parallel.tp_size",
                                                "tensor_parallel.tp.tp_size", "mp_size", "autotuning.mp_size"};
  int64_t size = 1;
  const char* said_by = nullptr;
  for (const char* key : kKeys) {
    const std::optional<int64_t> value = read_integer(config, key);
    if (!value) continue;
    if (*value < 0) refuse_value(key, *find(config, key), "a positive integer, or 0 for none");
    // 0 switches tensor parallelism off and 1 is what every one of them defaults to.
    if (*value <= 1) continue;
    if (said_by != nullptr && size != *value) {
      throw Error("contradictory tensor-parallel sizes: " + term(said_by, size) + " and " + term(key, *value) +
                  "; keep one");
    }
    size = *value;
    said_by = key;
  }
  return size;
}

}  // namespace

GivenBatchSizes read_batch_sizes(const Json& config) {
  return {read_positive(config, kMicroBatchKey), read_positive(config, kAccumulationKey),
          read_positive(config, kTrainBatchKey)};
}

void check_batch_sizes(const GivenBatchSizes& given, int64_t dp_size) {
  require_positive(dp_size, "the data-parallel size");
  int64_t unit = dp_size;
  std::string terms;
  if (given.micro_batch) {
    unit = multiply(unit, *given.micro_batch);
    terms = term(kMicroBatchKey, *given.micro_batch);
  }
  if (given.accumulation) {
    unit = multiply(unit, *given.accumulation);
    terms += (terms.empty() ? "" : " x ") + term(kAccumulationKey, *given.accumulation);
  }
  if (!given.train_batch) return;
  if (given.micro_batch && given.accumulation && *given.train_batch != unit) {
    throw Error("contradictory batch sizes: " + term(kTrainBatchKey, *given.train_batch) + " is not " +
                with_dp(terms, dp_size) + " = " + std::to_string(unit) + "; change one of them or set it to \"auto\"");
  }
  require_multiple(*given.train_batch, unit,
                   terms.empty() ? "the data-parallel size " + std::to_string(dp_size) : with_dp(terms, dp_size));
}

BatchSizes complete_batch_sizes(const GivenBatchSizes& given, int64_t dp_size) {
  check_batch_sizes(given, dp_size);
  BatchSizes sizes;
  sizes.accumulation = given.accumulation.value_or(1);
  if (given.micro_batch) {
    sizes.micro_batch = *given.micro_batch;
    if (given.train_batch && !given.accumulation) {
      sizes.accumulation = *given.train_batch / (sizes.micro_batch * dp_size);
    }
  } else if (given.train_batch) {
    sizes.micro_batch = *given.train_batch / (sizes.accumulation * dp_size);
  }
  sizes.train_batch = multiply(multiply(sizes.micro_batch, sizes.accumulation), dp_size);
  return sizes;
}

BatchSizes trial_batch_sizes(int64_t micro_batch, int64_t accumulation, int64_t dp_size,
                             std::optional<int64_t> global_batch) {
  require_positive(micro_batch, kMicroBatchKey);
  require_positive(dp_size, "the data-parallel size");
  if (!global_batch) {
    require_positive(accumulation, kAccumulationKey);
    return {micro_batch, accumulation, multiply(multiply(micro_batch, accumulation), dp_size)};
  }
  require_positive(*global_batch, "--global-batch");
  const int64_t per_micro_step = multiply(micro_batch, dp_size);
  if (*global_batch % per_micro_step != 0) {
    throw Error("--global-batch " + std::to_string(*global_batch) + " is not a multiple of " +
                with_dp(term(kMicroBatchKey, micro_batch), dp_size) + " = " + std::to_string(per_micro_step));
  }
  return {micro_batch, *global_batch / per_micro_step, *global_batch};
}

void write_batch_sizes(Json& config, const BatchSizes& sizes) {
  set(config, kMicroBatchKey, sizes.micro_batch);
  set(config, kAccumulationKey, sizes.accumulation);
  set(config, kTrainBatchKey, sizes.train_batch);
}

int64_t data_parallel_size(int64_t slots, const Json& config) {
  require_positive(slots, "the number of slots per trial");
  const int64_t tensor_parallel = tensor_parallel_size(config);
  const int64_t pipeline_stages = read_positive(config, "pipeline.stages").value_or(1);
  const int64_t slots_per_replica = multiply(tensor_parallel, pipeline_stages);
  if (slots % slots_per_replica != 0) {
    throw Error(std::to_string(slots) + " slots per trial is not a multiple of tensor-parallel size " +
                std::to_string(tensor_parallel) + " x pipeline.stages " + std::to_string(pipeline_stages) + " = " +
                std::to_string(slots_per_replica) + "; change --slots-per-trial or the configuration");
  }
  return slots / slots_per_replica;
}

}  // namespace dsat::config
