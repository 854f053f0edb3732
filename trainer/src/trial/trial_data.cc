// Checks a trial's loaders and finds the length of a pass that all ranks share.
// Ranks that build no loader learn the length from those that do.
#include "trial/trial_data.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <typeinfo>
#include <utility>

#include "comm/gather_json.h"
#include "trial/trial_state.h"

namespace dsat::trainer {
namespace {

std::string type_name(const Loader& loader) {
  int status = 0;
  char* const text = abi::__cxa_demangle(typeid(loader).name(), nullptr, nullptr, &status);
  const std::string name = text == nullptr ? typeid(loader).name() : text;
  std::free(text);
  return name;
}

void check_loader(TrialContext& context, const Loader* loader, const std::string& name, bool training) {
  if (loader == nullptr) throw Error(fmt::format("{} gave no loader: return a dsat::trainer::DataLoader", name));
  const auto* const own = dynamic_cast<const DataLoader*>(loader);
  if (own == nullptr) {
    if (!context.state().reproducibility_checks) return;
    throw Error(
        fmt::format("{} gave a {}, not a dsat::trainer::DataLoader, whose order is known: return one, or call "
                    "disable_dataset_reproducibility_checks()",
                    name, type_name(*loader)));
  }
  const ModelEngine& engine = *context.state().engines.front();
  if (training && own->batch_size() != engine.train_micro_batch_size_per_gpu()) {
    throw Error(
        fmt::format("{} gave micro batches of {} samples, but the engine's train_micro_batch_size_per_gpu is {} "
                    "(train_batch_size {}): make the two agree",
                    name, own->batch_size(), engine.train_micro_batch_size_per_gpu(), engine.train_batch_size()));
  }
}

// Ranks that build no loader learn the length from those that do.
int64_t common_length(World& world, const TrialData& data, const std::string& name) {
  const Json mine = data.loader ? Json(data.loader->length(data.shard)) : Json(nullptr);
  Json common;
  for (const Json& length : gather_json(world.comm(), mine)) {
    if (length.is_null()) continue;
    if (!common.is_null() && length != common) {
      throw Error(fmt::format("{}: one rank has {} micro batches in a pass, another {}: every rank must have as many",
                              name, common.dump(), length.dump()));
    }
    common = length;
  }
  if (common.is_null()) {
    throw Error(fmt::format("{}: no rank builds a loader: set should_build_data_loader on one", name));
  }
  return common.get<int64_t>();
}

}  // namespace

TrialData prepare_data(TrialContext& context, std::shared_ptr<Loader> built, const std::string& name, bool training) {
  const ModelParallelUnit unit = context.mpu();
  TrialData data;
  data.shard = {unit.data_parallel_rank, unit.data_parallel_world_size, context.world().seed()};
  if (unit.should_build_data_loader) {
    check_loader(context, built.get(), name, training);
    data.loader = std::move(built);
  }
  data.length = common_length(context.world(), data, name);
  return data;
}

}  // namespace dsat::trainer
