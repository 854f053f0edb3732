// Groups the trials by configuration, sorts by means, and asks what another measurement of each and of the best would
// gain.
#include "finals/finalists.h"

#include <algorithm>
#include <map>

#include "finals/finals.h"
#include "finals/gain.h"
#include "finals/noise.h"

namespace dsat::host {
namespace {

std::vector<Contender> contenders(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                  const std::function<bool(const Trial&)>& may_win) {
  std::vector<Contender> found;
  std::map<std::string, size_t> by_identity;
  for (const Trial& trial : trials) {
    const std::optional<double> value = value_of(trial, metric, maximise);
    if (!value || !may_win(trial)) continue;
    const auto [at, fresh] = by_identity.emplace(trial.identity, found.size());
    if (fresh) found.push_back({trial.id(), {}});
    found[at->second].values.push_back(*value);
  }
  return found;
}

}  // namespace

std::vector<Contender> by_means(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                uint64_t first, const std::function<bool(const Trial&)>& may_win) {
  std::vector<Contender> all = contenders(trials, metric, maximise, may_win);
  std::stable_sort(all.begin(), all.end(),
                   [](const Contender& a, const Contender& b) { return mean_of(a.values) > mean_of(b.values); });
  const auto chosen = std::find_if(all.begin(), all.end(), [&](const Contender& one) {
    return first < trials.size() && trials[one.trial].identity == trials[first].identity;
  });
  if (chosen != all.end()) std::rotate(all.begin(), chosen, chosen + 1);
  return all;
}

std::vector<Contender> choose_finalists(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                        uint64_t first, const std::function<bool(const Trial&)>& may_win, int budget) {
  const size_t most = static_cast<size_t>(std::clamp(budget, 0, static_cast<int>(kMostFinalists)));
  const std::vector<Contender> all = by_means(trials, metric, maximise, first, may_win);
  if (all.empty()) return all;
  const bool first_is_best = all.size() < 2 || mean_of(all[0].values) >= mean_of(all[1].values);
  const Contender& best = first_is_best ? all[0] : all[1];
  std::vector<Contender> finalists{all.front()};
  for (size_t i = 1; i < all.size() && finalists.size() < most; ++i) {
    if (&all[i] != &best) {
      const Repeats others =
          repeats_but(trials, metric, maximise, trials[all[i].trial].identity, trials[best.trial].identity);
      if (gain_of_another(all[i].values, best.values, others) < kTolerance) break;
    }
    finalists.push_back(all[i]);
  }
  return finalists;
}

}  // namespace dsat::host
