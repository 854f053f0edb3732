// An experiment file as YAML.
#include "dsat/yaml/yaml_file.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  fuzz::may_refuse([&] {
    const YamlFile file = YamlFile::parse(std::string(fuzz::text_of(data, size)), "experiment.yaml");
    file.find("hyperparameters.deepspeed_config");
    file.where("resources.slots_per_trial");
    file.text("name");
  });
  return 0;
}
