// The version of DeepSpeed that trains: what is right for one version is refused, or wrong, in another.
//
// Source: DeepSpeed's tags; docs/real-deepspeed.md. Threading: pure functions. Errors: none.
#ifndef DSAT_CONFIG_ENGINE_VERSION_H_
#define DSAT_CONFIG_ENGINE_VERSION_H_

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "dsat/error.h"

namespace dsat::config {

struct EngineVersion {
  int major = 0, minor = 0, patch = 0;
};
inline bool operator<(const EngineVersion& a, const EngineVersion& b) {
  return std::tie(a.major, a.minor, a.patch) < std::tie(b.major, b.minor, b.patch);
}

// "0.14.5", "0.12.3+git"; nullopt: another text.
std::optional<EngineVersion> parse_engine_version(std::string_view text);

// The defects of a version that matter to a study of these ZeRO stages, one line each. `config`: for its precision.
std::vector<std::string> engine_defects(const EngineVersion& version, const std::vector<int>& stages,
                                        const Json& config);

// The keys of a configuration that DeepSpeed after 0.19.6 refuses even where they are switched off, dotted.
std::vector<std::string> retired_keys(const Json& config);

// The keys with a fraction where this version of DeepSpeed wants a whole number, dotted: from 0.17.1 on.
std::vector<std::string> refused_fractions(const EngineVersion& version, const Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_ENGINE_VERSION_H_
