// Converts the words of the journal's columns. Threading: pure functions. Errors: dsat::Error, DSAT_DATA_LOSS, for an
// unknown word.
#ifndef DSAT_HOST_RECORD_JOURNAL_WORDS_H_
#define DSAT_HOST_RECORD_JOURNAL_WORDS_H_

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "dsat/outcome.h"
#include "record/trial.h"

namespace dsat::host {

inline constexpr const char* kPhases[] = {"profiler",     "baseline", "searcher",  "finals",
                                          "verification", "twin",     "comparison"};
// A trial that is being stopped still runs. "running" is read as TrialState::running.
inline constexpr const char* kStates[] = {"waiting", "running", "running", "ended", "delivered"};

inline Error unknown_word(const std::string& name) { return {DSAT_DATA_LOSS, fmt::format("unknown word '{}'", name)}; }

template <class Enum, size_t N>
Enum enum_from(const char* const (&names)[N], const std::string& name) {
  const auto* found = std::find_if(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
  if (found == std::end(names)) throw unknown_word(name);
  return static_cast<Enum>(found - std::begin(names));
}

inline const char* name_of(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

inline TrialKind kind_from(const std::string& name) {
  static constexpr const char* kNames[] = {"profile", "search", "repeat", "baseline", "duplicate"};
  return enum_from<TrialKind>(kNames, name);
}

inline Outcome outcome_from(const std::string& name) {
  const std::optional<dsat::Outcome> outcome = outcome_named(name);
  if (!outcome) throw unknown_word(name);
  return static_cast<Outcome>(*outcome);
}

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_JOURNAL_WORDS_H_
