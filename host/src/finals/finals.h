// The finals measure the best few again, in rounds, until one of them is clearly the best.
//
// Purpose: the best of many measurements is partly the luckiest. In each round every finalist that may still be the
//   best is measured once more, so that a machine that becomes slower favours none.
// Start event: {"metric", "maximise", "finalists": [{"trial", "overrides", "values"}], "others": Repeats, "budget",
//   "reason", "simpler": [Simpler]}: values as in noise.h, the searcher's choice first; `reason`: why the search ended,
//   handed on; `simpler`: in place of the searcher's choice, tried one after the other until one is not clearly slower.
// Ends when another round is expected to gain little, after kMostRounds, or when the budget is spent. Names the
//   simpler one if there is one, else the finalist with the best mean. A finalist that fails when it runs again is out.
#ifndef DSAT_HOST_FINALS_FINALS_H_
#define DSAT_HOST_FINALS_FINALS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "finals/host_strategy.h"
#include "finals/noise.h"
#include "finals/simpler.h"

namespace dsat::host {

// More finalists, and more rounds of them, cost more trials than they are worth.
inline constexpr size_t kMostFinalists = 4;
inline constexpr int kMostRounds = 3;
// A finalist is out if one more measurement of it and of the best is expected to gain less.
inline constexpr double kTolerance = 0.005;

// The metric's logarithm, as noise.h uses it; nullopt: there is no value above 0.
std::optional<double> comparable_value(const Json& metrics, const std::string& metric, bool maximise);

class Finals : public HostStrategy {
 protected:
  void start(const Json& brief) override;
  void trial_ended(const Ended& ended) override;

 private:
  struct Finalist {
    uint64_t trial = 0;
    Json overrides;
    std::vector<double> before, now;  // measurements of the search, and of the finals
    bool is_out = false;
  };
  void next();
  bool try_simpler();
  void next_round();
  bool measure(size_t finalist, const std::string& note, bool repeat);
  std::vector<double> values_of(const Finalist& one) const;
  Repeats repeats_but(const Finalist& a, const Finalist& b) const;
  const Finalist* leader() const;  // of those that are no simpler ones
  const Finalist* winner() const;
  const Finalist* simple() const;  // the simpler one that is not out; nullptr: none
  void drop_the_hopeless();

  std::string metric_, reason_;
  bool maximise_ = true;
  std::vector<Finalist> finalists_;  // the simpler ones that were tried last
  size_t rivals_ = 0;                // finalists that are no simpler ones
  std::vector<Simpler> simpler_;     // of those after them, and those still to be tried
  Repeats others_;
  int budget_ = 0;
  int rounds_ = 0;
  std::vector<std::pair<uint64_t, size_t>> open_;  // a trial that runs, and the index of its finalist
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_FINALS_H_
