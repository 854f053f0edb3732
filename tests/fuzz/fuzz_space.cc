// A space file over a configuration: the first line is the configuration, the rest the space.
#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  const size_t end = std::min(text.find('\n'), text.size());
  fuzz::may_refuse([&] {
    config::SpaceRequest request;
    request.stages = {0, 1, 2, 3};
    request.user_config = config::parse(text.substr(0, end), "ds_config.json");
    if (!request.user_config.is_object()) return;  // as load_file refuses it
    request.space_file = config::parse(text.substr(std::min(end + 1, text.size())), "space.json");
    const config::SpaceResult result = config::build_space(request);
    config::space_from_json(config::to_json(result.space));
  });
  return 0;
}
