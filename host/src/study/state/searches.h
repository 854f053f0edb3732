// The searchers that a study has had, one after the other: where in the journal each one's work began, and where the
// host ended it.
//
// Purpose: a study may be taken over by another searcher, and the host may end a search (early stopping, time budget).
//   Both say which of the journal's events a strategy has had: a resumed study hands over those and no others.
// Threading: plain values. Errors: the constructor throws dsat::Error for a value that it has not written.
#ifndef DSAT_HOST_STUDY_STATE_SEARCHES_H_
#define DSAT_HOST_STUDY_STATE_SEARCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/plugins.h"

namespace dsat::host {

// Why and where the host ended a search. Later events of it are in the journal, and the searcher never had them.
struct SearchEnd {
  uint64_t first_withheld = 0;  // the sequence number of the first such event
  std::string reason;
  bool of_time = false;  // the time budget was spent; if a new one is given, the search goes on
};

struct Search {
  uint64_t first_event = 0;  // its start event; all later events follow from it
  uint64_t first_trial = 0;  // earlier trials are observations to it
  std::string plugin;        // id and version, for people; empty: the first one, as long as the plan names it
  std::optional<SearchEnd> end;
  uint64_t counts_from = 0;  // early stopping counts no earlier trial
};

class Searches {
 public:
  Searches() : all_(1) {}
  // As the journal's meta row "searches" has it; nullopt: a study with its first searcher.
  explicit Searches(const std::optional<Json>& stored);

  const Search& current() const { return all_.back(); }
  bool was_ended_by_host() const { return current().end.has_value(); }

  // `before`: id and version of the searcher until now, which the plan names no longer.
  void take_over(uint64_t first_event, uint64_t first_trial, const PluginInfo& plugin, const std::string& before);
  void end(SearchEnd end) { all_.back().end = std::move(end); }
  // With as much patience as at its start: early stopping counts the trials from `next_trial` on.
  void go_on(uint64_t next_trial);
  // The events from `first` on are lost: a searcher that had only those begins again.
  void forget_events_from(uint64_t first, uint64_t trials);

  // All that have searched, in their order; empty where there was one, or the first one's name is not known.
  std::vector<std::string> names() const;
  Json to_json() const;

 private:
  std::vector<Search> all_;  // never empty
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_SEARCHES_H_
