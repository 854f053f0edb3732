// Reads one object of a scenario key by key. A missing, wrong or unknown key gives an error of one line.
// Threading: one thread. Errors: dsat::Error, beginning with the file and the key.
#ifndef DSAT_HOST_SIM_SCENARIO_SECTION_H_
#define DSAT_HOST_SIM_SCENARIO_SECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::host::sim {

class Section {
 public:
  // Reads the object under `key` of `parent`, empty if absent. If `key` is empty, reads `parent`.
  Section(const Json& parent, const std::string& key, std::string source);

  bool has(const std::string& key) const { return json_.contains(key); }

  // A key without a fallback is required.
  double above_zero(const std::string& key, std::optional<double> fallback = std::nullopt);
  double not_negative(const std::string& key, std::optional<double> fallback = std::nullopt);
  double share(const std::string& key, double fallback);  // at least 0 and below 1
  int64_t count(const std::string& key, std::optional<int64_t> fallback = std::nullopt);
  double size(const std::string& key, std::optional<double> fallback = std::nullopt);  // bytes: 80e9 or "80GB"
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  Json object(const std::string& key);
  Json list(const std::string& key);

  // Refuses keys that were not read.
  void finish() const;

  [[noreturn]] void wrong(const std::string& key, const std::string& what) const;

 private:
  const Json* take(const std::string& key, bool needed);
  double number(const std::string& key, std::optional<double> fallback);
  std::string path(const std::string& key) const;

  std::string source_, prefix_;
  Json json_;
  std::vector<std::string> known_;
};

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_SCENARIO_SECTION_H_
