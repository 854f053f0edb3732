// The JSON columns of the journal's rows: a trial's end, an event, an op. Journal names what throws as a damaged row;
// what is read is written as it was.
#include "fuzz/fuzz_target.h"
#include "plugin/strategy.h"
#include "record/trial.h"

namespace {

// `reread`: reads a value from JSON and writes it again.
template <class Reread>
void round_trip(const dsat::Json& json, Reread&& reread) {
  try {
    const dsat::Json written = reread(json);
    if (reread(written) != written) __builtin_trap();
  } catch (const std::exception&) {  // dsat::Error, or a key that is missing
  }
}

dsat::Json reread_end(const dsat::Json& json) {
  using namespace dsat;
  host::Trial trial;
  trial.record.id = json.value("id", uint64_t{0});  // the row's own, as is the outcome
  trial.record.outcome = host::Outcome::completed;
  read_end(json, trial);
  return end_to_json(trial);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const Json json = Json::parse(data, data + size, nullptr, false);
  if (json.is_discarded()) return 0;
  round_trip(json, reread_end);
  round_trip(json, [](const Json& event) { return to_json(host::event_from_json(event)); });
  round_trip(json, [](const Json& op) { return to_json(host::op_from_json(op)); });
  return 0;
}
