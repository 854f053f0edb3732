// Draws a configuration by the models, for a searcher that wants a new one and searches its micro batch itself.
//
// The models are made anew from what the study has shown: a draw depends on the trials and on nothing else, so that a
// searcher which was saved and restored draws the same.
// Threading: pure functions. Ownership: copies what it needs. Errors: as Surrogate's constructor.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_DRAW_CONFIGURATION_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_DRAW_CONFIGURATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dsat/searcher.h"
#include "search/configurations.h"

namespace dsat::zero_model {

// How many of a searcher's trials the models learn: the cost of a draw does not grow with the study.
inline constexpr size_t kLearnedTrials = 256;

// The searcher's own trials, besides those in study.observations.
struct SearcherTrials {
  struct Past {
    TrialId trial = kNoTrial;
    search::Configuration configuration;
    int64_t micro_batch = 1;
    Outcome outcome = Outcome::completed;
    std::optional<double> metric, peak_bytes;
  };
  struct Pending {
    search::Configuration configuration;
    int64_t micro_batch = 1;
  };
  std::vector<Past> past;  // the newest kLearnedTrials, in the order in which they ended
  std::vector<Pending> pending;
};

// The configuration with the largest expected gain of those that `usable` accepts; nullopt: the models propose none.
// `index` numbers the random choices.
std::optional<search::Configuration> draw_configuration(
    const Study& study, const SearcherTrials& trials, uint64_t index,
    const std::function<bool(const search::Configuration&)>& usable);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_DRAW_CONFIGURATION_H_
