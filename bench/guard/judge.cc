// Judges studies of false_alarms.py, one JSON object a line, with the host's own functions, and prints how many right
// trials and twins it takes for wrong ones, by precision and by how far the batches are apart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>

#include "finals/twin_check.h"
#include "outputs/curve.h"

namespace dsat::host {
namespace {

struct Rate {
  int alarms = 0, trials = 0;

  void add(bool is_alarm) {
    alarms += is_alarm ? 1 : 0;
    ++trials;
  }
  std::string text() const {
    return fmt::format("{} of {} ({:.2f} %)", alarms, trials, 100.0 * alarms / std::max(1, trials));
  }
};

Trial own_run(const Json& study, const Json& curve) {
  Trial trial;
  trial.record.config = study.at("config");
  trial.record.curve = curve_from_json(curve);
  return trial;
}

std::string why_twin(const Json& study, bool with_two_runs) {
  std::vector<Trial> runs;
  for (const Json& curve : study.at("own")) runs.push_back(own_run(study, curve));
  std::vector<const Trial*> used{&runs.front()};
  if (with_two_runs) used.push_back(&runs.back());
  const auto mismatch = band_for(used, study.at("config")).leaves(curve_from_json(study.at("twin")));
  return mismatch ? describe(*mismatch) : "";
}

std::string why_trial(const Json& study) {
  const Curve own = curve_from_json(study.at("own").front()), trial = curve_from_json(study.at("trial"));
  if (const auto odd = first_not_finite(trial)) return describe_not_finite(*odd);
  if (std::string why = what_is_stuck(own, trial, band_floor(study.at("config"))); !why.empty()) return why;
  return what_does_not_scale({own, study.at("own_batch").get<int64_t>()}, {trial, study.at("batch").get<int64_t>()});
}

int run() {
  std::map<std::string, Rate> rates;
  std::string line;
  while (std::getline(std::cin, line)) {
    const Json study = Json::parse(line);
    const double ratio = study.at("batch").get<double>() / study.at("own_batch").get<double>();
    const double apart = std::abs(std::log2(ratio));
    const auto note = [&](const std::string& kind, const std::string& why) {
      rates[kind].add(!why.empty());
      if (!why.empty()) fmt::print("{}: {}: {}\n", kind, study.at("what").get<std::string>(), why);
    };
    note("twin, two runs of the own", why_twin(study, true));
    note("twin, one run of the own", why_twin(study, false));
    note("trial", why_trial(study));
    note(fmt::format("trial, batches {} apart", apart < 1     ? "not"
                                                : apart < 3.5 ? "2 to 8 times"
                                                              : "16 to 64 times"),
         why_trial(study));
  }
  for (const auto& [kind, rate] : rates) fmt::print("{:<40} {}\n", kind, rate.text());
  return 0;
}

}  // namespace
}  // namespace dsat::host

int main() { return dsat::host::run(); }
