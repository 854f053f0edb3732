#include "dsat/trainer/trial.h"

namespace dsat::trainer {

void Trial::save(const std::string&) {
  throw Error(DSAT_UNIMPLEMENTED, "engines cannot be saved yet: leave --checkpoints out");
}
void Trial::load(const std::string&) {
  throw Error(DSAT_UNIMPLEMENTED, "engines cannot be loaded yet: leave --checkpoints out");
}

}  // namespace dsat::trainer
