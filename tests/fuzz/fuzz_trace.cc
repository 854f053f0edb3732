// A trace of recorded trials, as CSV.
#include "fuzz/fuzz_target.h"
#include "sim/csv.h"
#include "sim/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] { host::sim::parse_csv(text, "trace.csv"); });
  fuzz::may_refuse([&] {
    host::sim::TraceSurface surface(text, "trace.csv");
    surface.base_config();
    const Json config{{"zero_optimization", {{"stage", 1}}}, {"train_micro_batch_size_per_gpu", 2}};
    surface.run(host::SimulatedTrial{config});
  });
  return 0;
}
