// A configuration with fewer changes than the best, as a finalist.
//
// Purpose: it wins unless it is clearly slower, because a change without an effect is not worth having. What the trials
//   of the search let expect counts as much as it is sure (effects.h); few measurements alone show little.
// Threading: pure functions. Errors: simpler_from_json throws what the JSON library does.
#ifndef DSAT_HOST_FINALS_SIMPLER_H_
#define DSAT_HOST_FINALS_SIMPLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "finals/noise.h"
#include "record/trial.h"

namespace dsat::host {

struct Simpler {
  Json overrides;
  std::string note;                // "trial 7 with your own reduce_bucket_size"
  double loss = 0, deviation = 0;  // expected, of the metric's logarithm
};
Json to_json(const Simpler& simpler);
Simpler simpler_from_json(const Json& json);

// `slower_by`: how much lower than the best it was measured. `tolerance`: what the change may cost.
bool is_clearly_slower(const Simpler& simpler, const Difference& slower_by, double tolerance);

// Was this configuration first measured in the finals? Then it was chosen for being simple, not for a lucky
// measurement.
bool began_in_finals(const std::vector<Trial>& trials, const std::string& identity);

// "simplified: trial 7 with your own ..." if the best began in the finals, else "".
std::string simplified_text(const std::vector<Trial>& trials, uint64_t best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_SIMPLER_H_
