// DeepSpeed's batch-size rule in 64 bits. An error shows the numbers that contradict each other as a product, so that
// the user sees which one to change.
#include "dsat/config/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "dsat/config/json.h"
#include "values.h"

namespace dsat::config {
namespace {

// The product of sizes from a user may exceed 64 bits, and a wrapped product would look valid.
int64_t multiply(int64_t a, int64_t b) {
  if (a > std::numeric_limits<int64_t>::max() / b) {
    throw Error(fmt::format("batch sizes too large: {} x {} exceeds 64 bits", a, b));
  }
  return a * b;
}

void require_positive(int64_t value, const char* what) {
  if (value < 1) throw Error(fmt::format("{} is {}; it must be at least 1", what, value));
}

std::string term(const char* key, int64_t value) { return fmt::format("{} {}", key, value); }

std::string with_dp(const std::string& terms, int64_t dp_size) {
  return fmt::format("{} x data-parallel size {}", terms, dp_size);
}

// The samples of a rank in an optimizer step; 1 for a size that is not given.
int64_t of_rank(const GivenBatchSizes& given) {
  return multiply(given.micro_batch.value_or(1), given.accumulation.value_or(1));
}

std::string terms_of(const GivenBatchSizes& given) {
  std::string terms;
  if (given.micro_batch) terms = term(kMicroBatchKey, *given.micro_batch);
  if (given.accumulation) terms += (terms.empty() ? "" : " x ") + term(kAccumulationKey, *given.accumulation);
  return terms;
}

// train_batch_size must be a multiple of the product of the other sizes.
void require_multiple(int64_t train_batch, int64_t unit, const std::string& unit_terms) {
  if (train_batch % unit == 0) return;
  throw Error(fmt::format(
      "contradictory batch sizes: {} {} is not a multiple of {} = {}; change one of them or set it to \"auto\"",
      kTrainBatchKey, train_batch, unit_terms, unit));
}

}  // namespace

GivenBatchSizes read_batch_sizes(const Json& config) {
  return {read_positive(config, kMicroBatchKey), read_positive(config, kAccumulationKey),
          read_positive(config, kTrainBatchKey)};
}

void check_batch_sizes(const GivenBatchSizes& given, int64_t dp_size) {
  require_positive(dp_size, "the data-parallel size");
  const int64_t unit = multiply(dp_size, of_rank(given));
  const std::string terms = terms_of(given);
  if (!given.train_batch) return;
  if (given.micro_batch && given.accumulation && *given.train_batch != unit) {
    throw Error(fmt::format("contradictory batch sizes: {} {} is not {} = {}; change one of them or set it to \"auto\"",
                            kTrainBatchKey, *given.train_batch, with_dp(terms, dp_size), unit));
  }
  require_multiple(*given.train_batch, unit,
                   terms.empty() ? fmt::format("the data-parallel size {}", dp_size) : with_dp(terms, dp_size));
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

BatchSizes fit_batch_sizes(const GivenBatchSizes& given, int64_t dp_size) {
  require_positive(dp_size, "the data-parallel size");
  const int64_t unit = of_rank(given);
  const int64_t train_batch = given.train_batch.value_or(unit);
  if (train_batch % unit != 0) {
    throw Error(
        fmt::format("contradictory batch sizes at any number of devices: {} {} is not a multiple of {}; change one of "
                    "them or set it to \"auto\"",
                    kTrainBatchKey, train_batch, terms_of(given)));
  }
  const int64_t rest = std::max<int64_t>(1, train_batch / unit / dp_size);
  BatchSizes sizes;
  sizes.micro_batch = given.micro_batch.value_or(rest);
  sizes.accumulation = given.accumulation.value_or(given.micro_batch ? rest : 1);
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
    throw Error(fmt::format("--global-batch {} is not a multiple of {} = {}", *global_batch,
                            with_dp(term(kMicroBatchKey, micro_batch), dp_size), per_micro_step));
  }
  return {micro_batch, *global_batch / per_micro_step, *global_batch};
}

void write_batch_sizes(Json& config, const BatchSizes& sizes) {
  set(config, kMicroBatchKey, sizes.micro_batch);
  set(config, kAccumulationKey, sizes.accumulation);
  set(config, kTrainBatchKey, sizes.train_batch);
}

TensorParallelism tensor_parallelism(const Json& config) {
  constexpr std::string_view kInnerSize = "tensor_parallel.tp.tp_size";
  constexpr std::array<const char*, 5> kKeys = {"tensor_parallel.autotp_size", "tensor_parallel.tp_size",
                                                kInnerSize.data(), "mp_size", "autotuning.mp_size"};
  TensorParallelism result;
  const char* given_by = nullptr;
  for (const std::string_view key : kKeys) {
    const std::optional<int64_t> value = read_integer(config, key);
    // DeepSpeed reads the inner size only beside its own.
    if (!value || (key == kInnerSize && find(config, kKeys[0]) == nullptr)) continue;
    if (*value < 0) refuse_value(key, *find(config, key), "a positive integer, or 0 for none");
    // 0 switches tensor parallelism off; 1 is the default of every key.
    if (*value <= 1) continue;
    if (given_by != nullptr && result.size != *value) {
      throw Error(fmt::format("contradictory tensor-parallel sizes: {} {} and {} {}; keep one", given_by, result.size,
                              key, *value));
    }
    result.size = *value;
    result.divides_batch = result.divides_batch || key.find("mp_size") != std::string_view::npos;
    given_by = key.data();
  }
  return result;
}

int64_t data_parallel_size(int64_t slots, const Json& config) {
  require_positive(slots, "the number of slots per trial");
  const TensorParallelism tensor = tensor_parallelism(config);
  const int64_t sequence_parallel = read_positive(config, kSequenceParallelKey).value_or(1);
  const int64_t pipeline_stages = read_positive(config, "pipeline.stages").value_or(1);
  const int64_t slots_per_replica = multiply(multiply(tensor.size, sequence_parallel), pipeline_stages);
  if (slots % slots_per_replica != 0) {
    const std::string sequence_term =
        sequence_parallel > 1 ? fmt::format(" x {} {}", kSequenceParallelKey, sequence_parallel) : std::string();
    throw Error(
        fmt::format("{} slots per trial is not a multiple of tensor-parallel size {}{} x pipeline.stages {} = {}; "
                    "change --slots-per-trial or the configuration",
                    slots, tensor.size, sequence_term, pipeline_stages, slots_per_replica));
  }
  const int64_t divisor = tensor.divides_batch ? slots_per_replica : slots_per_replica / tensor.size;
  const int64_t size = slots / divisor;
  // DeepSpeed from 0.15.0 on takes data_parallel_size from a configuration that has both keys.
  const std::optional<int64_t> given = read_positive(config, kDataParallelKey);
  if (given && find(config, kSequenceParallelKey) != nullptr && *given != size) {
    throw Error(fmt::format("{} is {}, but {} slots per trial / {} = {}; change it, {} or --slots-per-trial",
                            kDataParallelKey, *given, slots, divisor, size, kSequenceParallelKey));
  }
  return size;
}

}  // namespace dsat::config
