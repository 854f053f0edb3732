// The default save() and load() of a trial: every engine under a tag of its own.
// Engines save and load together with all ranks.
#include "dsat/trainer/trial.h"

#include <fmt/format.h>

#include "trial/trial_state.h"

namespace dsat::trainer {
namespace {

std::string tag_of(size_t engine) { return fmt::format("engine{}", engine); }

}  // namespace

void Trial::save(const std::string& path) {
  const auto& engines = context_.state().engines;
  for (size_t i = 0; i < engines.size(); ++i) engines[i]->save_checkpoint(path, tag_of(i));
}

void Trial::load(const std::string& path) {
  const auto& engines = context_.state().engines;
  for (size_t i = 0; i < engines.size(); ++i) engines[i]->load_checkpoint(path, tag_of(i));
}

}  // namespace dsat::trainer
