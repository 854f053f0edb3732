// A hostfile, and on its first line the launcher's filters of nodes.
#include "fuzz/fuzz_target.h"
#include "slots/hostfile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] { host::parse_hostfile(text, "hostfile"); });
  fuzz::may_refuse([&] { host::parse_node_filters(text.substr(0, text.find('\n')), "--include"); });
  return 0;
}
