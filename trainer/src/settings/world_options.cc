// Declares the options of every training program and reads them out of a command line that it shares with a script.
// The environment stands in for the device and its memory where the command line leaves them out.
#include "dsat/trainer/world_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "dsat/cli/read_value.h"
#include "dsat/cli/values.h"
#include "dsat/error.h"
#include "settings/world_option_set.h"

namespace dsat::trainer {
namespace {

using cli_kit::Again;
using cli_kit::Option;
using cli_kit::OptionSet;
using cli_kit::Values;

constexpr int64_t kMostRanks = 1024;
const std::vector<std::string> kDevices{"auto", "cpu", "cuda"};  // in the order of DeviceChoice

// nullptr: not set.
const char* environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

DeviceChoice read_device(const std::string& shown, const std::string& text) {
  return static_cast<DeviceChoice>(cli_kit::read_choice(shown, text, kDevices));
}

// --deepspeed FILE is the configuration, too, as Hugging Face writes it.
std::string config_of(const Values& values) {
  std::vector<std::string> configs = values.texts("deepspeed_config");
  for (const std::string& config : values.texts("deepspeed")) configs.push_back(config);
  if (configs.size() > 1) throw Error("--deepspeed_config is given twice; give one configuration");
  return configs.empty() ? "" : configs.front();
}

void read_device_options(const Values& values, WorldOptions& options) {
  const char* const device = environment("DSAT_DEVICE");
  const char* const memory = environment("DSAT_DEVICE_MEMORY");
  if (const auto text = values.text("device")) {
    options.device = read_device("--device", *text);
  } else if (device != nullptr) {
    options.device = read_device("DSAT_DEVICE", device);
  }
  options.device_memory = values.size("device-memory");
  if (!options.device_memory && memory != nullptr) {
    options.device_memory = cli_kit::read_size("DSAT_DEVICE_MEMORY", memory);
  }
}

}  // namespace

void add_options(OptionSet& set, const std::string& heading, std::vector<Option> options) {
  for (Option& option : options) option.again = Again::replaces;
  set.add_group(heading, std::move(options));
}

OptionSet world_option_set() {
  const char* const kHeading = "Configuration, ranks and devices";
  OptionSet set;
  set.add_group(
      kHeading,
      {Option::path("deepspeed_config", "FILE",
                    "the configuration (or its URL-safe base64); --deepspeed alone is accepted and ignored")
           .also("--deepspeed-config")
           .when_repeated(Again::adds),
       Option::path("deepspeed", "FILE", "").taking(cli_kit::Takes::config_file).when_repeated(Again::adds).hide()});
  add_options(
      set, kHeading,
      {Option::integer("ranks",
                       "start N processes here. Without it RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from "
                       "the environment place this process in a group started elsewhere")
           .from(1, kMostRanks)
           .by_default(1),
       // DeepSpeed's launcher adds it; the environment's RANK says the same.
       Option::integer("local_rank", "").from(-1, kMostRanks).also("--local-rank").hide(),
       Option::integer("pipeline-stages",
                       "cut the model into N stages that different ranks compute (pipeline.stages of the "
                       "configuration does the same); N groups of ranks then share the data")
           .from(1, kMostRanks),
       Option::choice("device", kDevices,
                      "auto: cuda where this build and this machine have it; default: DSAT_DEVICE, else auto"),
       Option::size("device-memory",
                    "memory of each rank's device, like 512MiB; more than that is an out-of-memory failure; "
                    "default: DSAT_DEVICE_MEMORY, else unlimited"),
       Option::toggle("fp16-as-bf16", "train in bf16 where the configuration says fp16, which a CPU cannot compute"),
       Option::integer("stop-grace",
                       "seconds from SIGTERM to the end of ranks that go on; a second SIGTERM ends them at once")
           .from(0, 1000000)
           .by_default(60),
       Option::integer("seed", "of parameters, data and dropout").from(0).by_default(42)});
  return set;
}

void refuse_leftovers(const std::vector<std::string>& tokens, const OptionSet& known,
                      const std::string& how_to_get_help) {
  if (tokens.empty()) return;
  const std::string& token = tokens.front();
  const std::string nearest = token.rfind('-', 0) == 0 ? known.nearest(token.substr(0, token.find('='))) : "";
  if (!nearest.empty()) throw Error(fmt::format("unknown argument '{}', did you mean {}?", token, nearest));
  throw Error(fmt::format("unknown argument '{}'; {} lists them", token, how_to_get_help));
}

WorldOptions parse_world_options(const std::vector<std::string>& args) {
  const OptionSet set = world_option_set();
  cli_kit::Split parts = cli_kit::split(set, args, cli_kit::Grammar::shared);
  const Values values(set, parts.options);
  WorldOptions options;
  options.deepspeed_config = config_of(values);
  options.ranks = values.integer("ranks").value_or(options.ranks);
  options.pipeline_stages = values.integer("pipeline-stages").value_or(options.pipeline_stages);
  if (const auto seed = values.integer("seed")) options.seed = static_cast<uint64_t>(*seed);
  options.stop_grace_s = values.integer("stop-grace").value_or(options.stop_grace_s);
  options.fp16_as_bf16 = values.given("fp16-as-bf16");
  read_device_options(values, options);
  options.arguments = std::move(parts.rest);
  return options;
}

}  // namespace dsat::trainer
