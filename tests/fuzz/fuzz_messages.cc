// What a plugin's own process sends: frames in pieces of any size, and what the host reads in their JSON: descriptions,
// requests and profiles. The first byte is the size of a piece.
#include <algorithm>

#include "fuzz/fuzz_target.h"
#include "plugin/framing.h"
#include "plugin/plugin_info_json.h"
#include "plugin/profile_check.h"
#include "plugin/strategy.h"

namespace {

using dsat::Json;

// A description that is taken is written as it was; so is an op.
void read_parts(const Json& json) {
  using namespace dsat::host;
  dsat::fuzz::may_refuse([&] {
    const Json written = to_json(plugin_info_from_json(json));
    if (to_json(plugin_info_from_json(written)) != written) __builtin_trap();
  });
  try {
    const Json written = to_json(op_from_json(json));
    if (to_json(op_from_json(written)) != written) __builtin_trap();
  } catch (const std::exception&) {  // dsat::Error, or a key that is missing
  }
  const std::string problem = profile_problem(json);
  if (problem.find('\n') != std::string::npos) __builtin_trap();
}

// Where the host looks for them.
void read_message(const Json& message) {
  read_parts(message);
  for (const char* one : {"request", "profile"}) {
    if (message.contains(one)) read_parts(message[one]);
  }
  for (const char* list : {"ops", "plugins"}) {
    if (!message.contains(list)) continue;
    for (const Json& entry : message[list]) read_parts(entry);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat::host;
  if (size == 0) return 0;
  const size_t piece = std::max<size_t>(1, data[0]);
  FrameReader reader;
  dsat::fuzz::may_refuse([&] {
    for (size_t at = 1; at < size; at += piece) {
      reader.append(reinterpret_cast<const char*>(data + at), std::min(piece, size - at));
      while (const auto message = reader.next()) {
        if (message->kind == Message::Kind::json) read_message(message->json());
      }
    }
  });
  return 0;
}
