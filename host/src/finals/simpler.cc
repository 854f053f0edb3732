// Weighs the expectation and the measurement by their variances, and asks how sure the sum is.
#include "finals/simpler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dsat::host {
namespace {

// The model of the effects is not surer of a sum of them than this.
constexpr double kLeastDeviation = 0.005;
// The best was chosen because it measured well, so a difference from it has to be this sure.
constexpr double kClear = 0.75;

}  // namespace

Json to_json(const Simpler& simpler) {
  return {{"overrides", simpler.overrides},
          {"note", simpler.note},
          {"loss", simpler.loss},
          {"deviation", simpler.deviation}};
}

Simpler simpler_from_json(const Json& json) {
  return {json.at("overrides"), json.at("note").get<std::string>(), json.at("loss").get<double>(),
          json.at("deviation").get<double>()};
}

bool is_clearly_slower(const Simpler& simpler, const Difference& slower_by, double tolerance) {
  const double deviation = std::max(simpler.deviation, kLeastDeviation);
  const double of_expected = 1 / (deviation * deviation), of_measured = 1 / (slower_by.scale * slower_by.scale);
  const double all = of_expected + of_measured;
  const double mean = (simpler.loss * of_expected + slower_by.mean * of_measured) / all;
  return Difference{mean, 1 / std::sqrt(all), slower_by.degrees}.chance_above(tolerance) > kClear;
}

bool began_in_finals(const std::vector<Trial>& trials, const std::string& identity) {
  const auto first =
      std::find_if(trials.begin(), trials.end(), [&](const Trial& trial) { return trial.identity == identity; });
  return first != trials.end() && first->phase == Phase::finals;
}

std::string simplified_text(const std::vector<Trial>& trials, uint64_t best) {
  if (best >= trials.size() || !began_in_finals(trials, trials[best].identity)) return "";
  return fmt::format("simplified: {}, which had no clear effect\n", trials[best].record.note);
}

}  // namespace dsat::host
