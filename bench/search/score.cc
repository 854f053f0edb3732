// Regrets of the configurations that a study hands back, after each trial and at the end, and their medians and means
// over the seeds.
#include "search/score.h"

#include <algorithm>
#include <limits>

#include "search/surfaces/optimum.h"

namespace dsat::bench {
namespace {

constexpr double kNothing = 100;  // regret of a study that hands nothing back

double regret_of(const Surface& surface, const Json& config, double optimum) {
  return config.is_null() ? kNothing : regret_percent(surface.throughput(point_of(config)), optimum);
}

}  // namespace

Json to_json(const SeedScore& score) {
  Json handed = Json::array();
  for (const auto& [budget, regret] : score.handed) handed.push_back({budget, regret});
  return {{"handed", handed},
          {"so_far", score.so_far},
          {"tried", score.tried},
          {"trials", score.trials},
          {"oom", score.out_of_memory},
          {"wall_s", score.wall_s},
          {"profile_s", score.profile_s},
          {"full_s", score.full_s},
          {"busy_s", score.busy_s},
          {"decision_ms", score.decision_ms}};
}

SeedScore score_from_json(const Json& json) {
  SeedScore score;
  for (const Json& entry : json.at("handed")) score.handed[entry.at(0).get<int>()] = entry.at(1).get<double>();
  score.so_far = json.at("so_far").get<std::vector<double>>();
  score.tried = json.at("tried").get<double>();
  score.trials = json.at("trials").get<int>();
  score.out_of_memory = json.at("oom").get<int>();
  score.wall_s = json.at("wall_s").get<double>();
  score.profile_s = json.at("profile_s").get<double>();
  score.full_s = json.at("full_s").get<double>();
  score.busy_s = json.at("busy_s").get<double>();
  score.decision_ms = json.at("decision_ms").get<double>();
  return score;
}

void add_study(SeedScore& score, const Surface& surface, double optimum, const StudyRun& run, int budget,
               int concurrency) {
  score.handed[budget] = regret_of(surface, run.best, optimum);
  const int before = score.trials;
  score.so_far.clear();
  for (size_t count = 1; count <= run.trials.size(); ++count) {
    score.so_far.push_back(regret_of(surface, best_measured(run.trials, count), optimum));
  }
  score.tried = kNothing;
  for (const TrialLog& trial : run.trials) {
    if (trial.throughput > 0) score.tried = std::min(score.tried, regret_of(surface, trial.config, optimum));
  }
  score.trials = static_cast<int>(run.trials.size());
  score.out_of_memory = 0;
  score.busy_s = 0;
  size_t searched = 0;  // the first trial of the search
  for (size_t i = 0; i < run.trials.size(); ++i) {
    if (run.trials[i].outcome == Outcome::out_of_memory) ++score.out_of_memory;
    const bool profile = run.trials[i].end_s <= run.profile_s;
    if (profile) searched = i + 1;
    if (!profile) score.busy_s += run.trials[i].end_s - run.trials[i].start_s;
  }
  score.wall_s = run.wall_s;
  score.profile_s = run.profile_s;
  score.full_s = full_slots_s(run.trials, searched, concurrency);
  const double all = static_cast<double>(before + score.trials);
  score.decision_ms = (score.decision_ms * before + 1e3 * run.decision_s) / std::max(1.0, all);
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Summary summarise(const std::vector<SeedScore>& seeds, int concurrency) {
  Summary summary;
  const double count = static_cast<double>(seeds.size());
  std::map<int, std::vector<double>> handed;
  std::vector<double> tried;
  for (const SeedScore& seed : seeds) {
    tried.push_back(seed.tried);
    for (const auto& [budget, regret] : seed.handed) handed[budget].push_back(regret);
    summary.out_of_memory += 100.0 * seed.out_of_memory / std::max(1, seed.trials) / count;
    const double search_s = std::max(1e-9, seed.wall_s - seed.profile_s);
    summary.wall_ratio += search_s / std::max(1e-9, seed.full_s) / count;
    summary.slot_use += 100 * seed.busy_s / (search_s * concurrency) / count;
    summary.wall_h += seed.wall_s / 3600 / count;
    summary.decision_ms += seed.decision_ms / count;
  }
  summary.tried = median(tried);
  for (auto& [budget, regrets] : handed) summary.regret[budget] = median(regrets);
  if (handed.count(20) != 0) {
    const auto& regrets = handed[20];
    summary.within_1_at_20 =
        100.0 *
        static_cast<double>(std::count_if(regrets.begin(), regrets.end(), [](double regret) { return regret <= 1; })) /
        count;
  }
  for (const double limit : {5.0, 1.0}) {
    std::vector<double> trials;
    for (const SeedScore& seed : seeds) {
      const auto there = std::find_if(seed.so_far.begin(), seed.so_far.end(), [&](double r) { return r <= limit; });
      const bool found = there != seed.so_far.end();
      trials.push_back(found ? static_cast<double>(there - seed.so_far.begin() + 1) : 1e9);
    }
    const double middle = median(trials);
    summary.trials_to[limit] = middle < 1e6 ? middle : 0;
  }
  return summary;
}

}  // namespace dsat::bench
