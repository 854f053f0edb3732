// Compares the versions of a trial with those of the trial before it.
#include "record/versions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace dsat::host {
namespace {

struct Part {
  const char* name;
  std::string EndDetails::*version;
};
constexpr Part kParts[] = {{"DeepSpeed", &EndDetails::engine_version},
                           {"torch", &EndDetails::torch_version},
                           {"driver", &EndDetails::driver_version}};

// The last version that a trial before `id` reported; empty: none did.
std::string earlier(const std::vector<Trial>& trials, uint64_t id, std::string EndDetails::*version) {
  for (size_t i = std::min<size_t>(id, trials.size()); i-- > 0;) {
    if (trials[i].end && !((*trials[i].end).*version).empty()) return (*trials[i].end).*version;
  }
  return "";
}

}  // namespace

std::optional<config::EngineVersion> engine_version_of(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) {
    if (trial.end && !trial.end->engine_version.empty()) return config::parse_engine_version(trial.end->engine_version);
  }
  return std::nullopt;
}

std::vector<std::string> warn_of_versions(const std::vector<Trial>& trials, uint64_t id,
                                          const std::vector<int>& stages) {
  std::vector<std::string> warnings;
  if (id >= trials.size() || !trials[id].end) return warnings;
  for (const Part& part : kParts) {
    const std::string& now = (*trials[id].end).*part.version;
    const std::string before = earlier(trials, id, part.version);
    if (now.empty() || now == before) continue;
    if (!before.empty()) {
      warnings.push_back(fmt::format(
          "{} was {} and is {} since trial {}: earlier trials measured another version, so their figures may "
          "not compare; begin a new study to be sure",
          part.name, before, now, id));
    }
    if (part.version != &EndDetails::engine_version) continue;
    const std::optional<config::EngineVersion> version = config::parse_engine_version(now);
    if (!version) continue;
    const Json& config = trials[id].record.config;
    for (std::string& defect : config::engine_defects(*version, stages, config)) warnings.push_back(std::move(defect));
    const auto fractions = config::refused_fractions(*version, config);
    if (fractions.empty()) continue;
    warnings.push_back(fmt::format("DeepSpeed {} wants a whole number for '{}'", now, fmt::join(fractions, "', '")));
  }
  return warnings;
}

std::string versions_text(const std::vector<Trial>& trials) {
  std::vector<std::string> parts;
  for (const Part& part : kParts) {
    const std::string version = earlier(trials, UINT64_MAX, part.version);
    if (!version.empty()) parts.push_back(fmt::format("{} {}", part.name, version));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace dsat::host
