#include "dsat/trainer/trial.h"

#include "trial/trial_state.h"

namespace dsat::trainer {
namespace {

std::string tag_of(size_t engine) { return "engine" + std::to_string(engine); }

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
