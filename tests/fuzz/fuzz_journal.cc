// The JSON columns of the journal's rows: a trial's end, an event, an op. Journal names what throws as a damaged row;
// what is read is written as it was.
#include "fuzz/fuzz_target.h"
#include "plugin/strategy.h"
#include "record/trial.h"

namespace {

template <class FromJson>
void round_trip(const dsat::Json& json, FromJson&& from_json) {
  try {
    const dsat::Json written = to_json(from_json(json));
    if (to_json(from_json(written)) != written) __builtin_trap();
  } catch (const std::exception&) {  // dsat::Error, or a key that is missing
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const Json json = Json::parse(data, data + size, nullptr, false);
  if (json.is_discarded()) return 0;
  round_trip(json, host::trial_end_from_json);
  round_trip(json, host::event_from_json);
  round_trip(json, host::op_from_json);
  return 0;
}
