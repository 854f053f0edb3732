// An experiment file as YAML, and a copy of it with another value.
#include <cstdlib>

#include "dsat/yaml/yaml_copy.h"
#include "dsat/yaml/yaml_file.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  fuzz::may_refuse([&] {
    const std::string text(fuzz::text_of(data, size));
    const YamlFile file = YamlFile::parse(text, "experiment.yaml");
    file.find("hyperparameters.deepspeed_config");
    file.where("resources.slots_per_trial");
    file.text("name");
    YamlCopy copy(text, "experiment.yaml");
    copy.set("deepspeed", "/a/b.json");
    copy.set("hyperparameters.batch", 3);
    copy.erase("name");
    const YamlFile changed = YamlFile::parse(copy.text(), "copy.yaml");
    if (changed.text("deepspeed") != "/a/b.json" || changed.find("name") != nullptr) std::abort();
  });
  return 0;
}
