// A file of the memory probe.
#include "fuzz/fuzz_target.h"
#include "outputs/probe_report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dsat::fuzz::may_refuse([&] { dsat::host::parse_probe_file(dsat::fuzz::text_of(data, size), "rank0.json"); });
  return 0;
}
