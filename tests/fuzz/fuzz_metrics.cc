// A trial's result: measured, or of the model, or the flops profiler's report. What is read is plausible.
#include <cmath>

#include "dsat/config/json.h"
#include "fuzz/fuzz_target.h"
#include "outputs/flops_profiler_report.h"
#include "outputs/plausible.h"
#include "outputs/read_metrics.h"

namespace {

void check(const dsat::host::TrialReport& report) {
  for (const auto& [name, value] : report.metrics.items()) {
    const double number = value.get<double>();
    if (!std::isfinite(number)) __builtin_trap();
    if (name == "FLOPS_per_gpu" && number > 1e18) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  static const Json kConfig{
      {"train_batch_size", 8}, {"train_micro_batch_size_per_gpu", 4}, {"gradient_accumulation_steps", 2}};
  fuzz::may_refuse([&] { check(host::read_metrics(text, "metrics.json", kConfig)); });
  fuzz::may_refuse([&] { check(host::read_model_info(text, "model_info.json")); });
  fuzz::may_refuse([&] { check(host::read_flops_report(text, "flops_profiler.txt", kConfig)); });
  fuzz::may_refuse([&] { check(host::read_flops_model_info(text, "flops_profiler.txt")); });
  return 0;
}
