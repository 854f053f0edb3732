// The best and the user's own configuration, measured again and in turn: how far apart are they?
//
// Purpose: the best was chosen because it measured well, so the measurements before the choice flatter it. The gain
//   counts the measurements of the best from after its choice alone, and all of the user's own (gain.h).
// Start event: {"metric", "maximise", "best": {"trial", "overrides", "values", "after"}, "own": {"trial", "overrides",
//   "values"}, "own_may_win", "others": Repeats, "budget", "reason"}.
// Ends when the 95 % interval of the gain is narrow, after kMostComparisons of each, or when the budget is spent. Names
//   the best, or the user's own if these measurements favour it and it may be handed back.
#ifndef DSAT_HOST_FINALS_COMPARISON_H_
#define DSAT_HOST_FINALS_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "finals/host_strategy.h"
#include "finals/noise.h"

namespace dsat::host {

inline constexpr int kMostComparisons = 4;
// Half of the interval, as a share of the gain: 3.1 is then 3.0 to 3.2.
inline constexpr double kNarrow = 0.03;

class BestAgainstOwn : public HostStrategy {
 protected:
  void start(const Json& brief) override;
  void trial_ended(const Ended& ended) override;

 private:
  struct Side {
    uint64_t trial = 0;
    Json overrides;
    std::vector<double> values, before;  // `before`: measurements from before this phase
    int asked = 0;
    bool fails = false;
  };
  void next();
  bool ask_for(Side& side, const char* what);
  bool is_narrow() const;
  bool is_own_better() const;
  std::vector<double> own_values() const;

  std::string metric_, reason_;
  bool maximise_ = true, own_may_win_ = false;
  Side best_, own_;
  Repeats others_;
  int budget_ = 0;
  std::vector<std::pair<uint64_t, Side*>> open_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_COMPARISON_H_
