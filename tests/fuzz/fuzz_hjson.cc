// A text of a user's: JSON or Hjson. What was read is JSON, and a JSON text means the same to both readers.
#include "dsat/config/json.h"
#include "fuzz/fuzz_target.h"

namespace {

// A comma too many makes a JSON object Hjson; empty: the text is no object with a member.
std::string with_comma(std::string_view text, const dsat::Json& json) {
  const size_t end = text.find_last_of("}*/");
  if (!json.is_object() || json.empty() || end == std::string_view::npos || text[end] != '}') return {};
  return std::string(text.substr(0, end)) + ",}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] {
    const std::string identity = config::identity(config::parse_input(text, "ds_config.json"));
    if (config::identity(config::parse(identity, "identity")) != identity) __builtin_trap();
  });
  fuzz::may_refuse([&] {
    const Json json = config::parse(text, "ds_config.json");
    const std::string relaxed = with_comma(text, json);
    if (relaxed.empty()) return;
    if (config::identity(config::parse_input(relaxed, "relaxed")) != config::identity(json)) __builtin_trap();
  });
  return 0;
}
