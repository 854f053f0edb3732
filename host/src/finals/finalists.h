// The configurations that may be the best, by the measurements so far: the finalists.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FINALS_FINALISTS_H_
#define DSAT_HOST_FINALS_FINALISTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// One configuration with its measurements, as noise.h wants them.
struct Contender {
  uint64_t trial = 0;  // the first trial of the configuration
  std::vector<double> values;
};

// All measured configurations: first the configuration of the trial `first`, then the others by their means. `may_win`:
// false for a trial whose configuration may not become the best.
std::vector<Contender> by_means(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                uint64_t first, const std::function<bool(const Trial&)>& may_win);

// The first configuration of by_means, and all others whose chance to be better than the best mean is not small
// (finals.h). There are at most kMostFinalists, and at most `budget`, since each round measures all of them.
std::vector<Contender> choose_finalists(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                        uint64_t first, const std::function<bool(const Trial&)>& may_win, int budget);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_FINALISTS_H_
