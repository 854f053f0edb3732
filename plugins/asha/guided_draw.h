// A configuration that guided's models believe in, for another searcher that wants a new one.
//
// The models are made anew from what the study has shown: a draw depends on the trials and on nothing else, so that a
// searcher which was saved and restored draws the same.
// Threading: pure functions. Ownership: copies what it needs.
#ifndef DSAT_PLUGINS_ASHA_GUIDED_DRAW_H_
#define DSAT_PLUGINS_ASHA_GUIDED_DRAW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dsat/searcher.h"
#include "search/configurations.h"

namespace dsat::guided {

// Trials that the models learn: the cost of a draw does not grow with the study.
inline constexpr size_t kNewest = 256;

// What there is besides study.observations.
struct StudySoFar {
  struct Ended {
    TrialId trial = kNoTrial;
    search::Configuration configuration;
    int64_t micro_batch = 1;
    Outcome outcome = Outcome::completed;
    std::optional<double> metric, peak_bytes;
  };
  struct Running {
    search::Configuration configuration;
    int64_t micro_batch = 1;
  };
  std::vector<Ended> ended;  // the newest kNewest, in the order in which they ended
  std::vector<Running> running;
};

// The one with the largest expected gain of those that `usable` accepts; nullopt: the models name none.
std::optional<search::Configuration> draw(const Study& study, const StudySoFar& so_far, uint64_t index,
                                          const std::function<bool(const search::Configuration&)>& usable);

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ASHA_GUIDED_DRAW_H_
