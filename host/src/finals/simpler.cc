// Weighs the expectation and the measurement by their variances.
#include "finals/simpler.h"

#include <fmt/format.h>

#include <algorithm>

namespace dsat::host {
namespace {

// The model of the effects is not surer of a sum of them than this.
constexpr double kLeastDeviation = 0.005;

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
  return simpler.loss * of_expected + slower_by.mean * of_measured > tolerance * (of_expected + of_measured);
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
