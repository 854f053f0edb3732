// Asks for one trial of the user's own configuration. The study goes on whatever its outcome is.
#include "finals/baseline.h"

namespace dsat::host {

void Baseline::start(const Json& brief) {
  if (!ask(brief.at("overrides"), "your own configuration")) finish("the trial limit leaves no trial for it", {});
}

void Baseline::trial_ended(const Ended& ended) { finish("your own configuration has ended", ended.trial); }

}  // namespace dsat::host
