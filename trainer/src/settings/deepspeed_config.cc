// Merges configurations leaf by leaf, and compares an experiment's sizes with an engine's.
// Both sides of a contradiction are named, because either may be the wrong one.
#include "dsat/trainer/deepspeed_config.h"

#include <fmt/format.h>

#include <string>

#include "dsat/config/json.h"

namespace dsat::trainer {
namespace {

void compare(const Json& experiment, const char* key, const char* engine_key, int64_t engine) {
  const Json* theirs = config::find(experiment, key);
  if (theirs == nullptr || theirs->is_null()) return;
  if (theirs->is_number_integer() && theirs->get<int64_t>() == engine) return;
  throw Error(fmt::format("the experiment's {} is {}, but the engine's {} is {}: make the two agree", key,
                          theirs->dump(), engine_key, engine));
}

}  // namespace

Json overwrite_deepspeed_config(const Json& base, const Json& source) {
  if (!source.is_object())
    throw Error(fmt::format("what overwrites a DeepSpeed configuration is an object, not {}", source.dump()));
  Json result = base.is_string() ? config::load_input(base.get<std::string>()) : base;
  if (!result.is_object()) {
    throw Error(
        fmt::format("a DeepSpeed configuration is an object or the path of a JSON file with one, not {}", base.dump()));
  }
  config::overwrite(result, source);
  return result;
}

void reconcile_sizes(const Json& experiment, const EngineSizes& engine) {
  compare(experiment, "hyperparameters.global_batch_size", "train_batch_size", engine.train_batch_size);
  compare(experiment, "hyperparameters.train_batch_size", "train_batch_size", engine.train_batch_size);
  compare(experiment, "hyperparameters.train_micro_batch_size_per_gpu", "train_micro_batch_size_per_gpu",
          engine.train_micro_batch_size_per_gpu);
  compare(experiment, "hyperparameters.gradient_accumulation_steps", "gradient_accumulation_steps",
          engine.gradient_accumulation_steps);
  compare(experiment, "hyperparameters.data_parallel_world_size", "data-parallel world size",
          engine.data_parallel_world_size);
  compare(experiment, "resources.slots_per_trial", "world size", engine.world_size);
}

Json without_const_wrappers(const Json& hyperparameters) {
  if (!hyperparameters.is_object()) return hyperparameters;
  const auto type = hyperparameters.find("type");
  if (type != hyperparameters.end() && *type == "const" && hyperparameters.contains("val")) {
    return hyperparameters["val"];
  }
  Json result = Json::object();
  for (const auto& [key, value] : hyperparameters.items()) result[key] = without_const_wrappers(value);
  return result;
}

}  // namespace dsat::trainer
