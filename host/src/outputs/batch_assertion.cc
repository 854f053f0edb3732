// Reads the numbers of the assertion and compares the last one with the configuration.
#include "outputs/batch_assertion.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cstdint>

#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"

namespace dsat::host {

std::string explain_batch_assertion(const std::string& line, const Json& config) {
  static const re2::RE2 numbers(R"((\d{1,12}) != (\d{1,9}) \* (\d{1,9}) \* (\d{1,9}))");
  int64_t batch = 0, micro_batch = 0, accumulation = 0, found = 0;
  if (line.find("world_size") == std::string::npos) return "";
  if (!re2::RE2::PartialMatch(line, numbers, &batch, &micro_batch, &accumulation, &found)) return "";
  const bool is_ours = config::whole_number_at<int64_t>(config, config::kTrainBatchKey) == batch &&
                       config::whole_number_at<int64_t>(config, config::kMicroBatchKey) == micro_batch;
  const int64_t samples = micro_batch * accumulation;
  if (!is_ours || samples < 1 || batch % samples != 0 || found < 1) return "";
  return fmt::format(
      " (DeepSpeed found {} data-parallel processes where the trial has room for {}: start as many with a launcher, as "
      "in deepspeed or torchrun --nproc_per_node, or give --slots-per-trial {})",
      found, batch / samples, found);
}

}  // namespace dsat::host
