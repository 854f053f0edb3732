// The searchers of a study, one after the other: where in the journal the work of each one began, and where the host
// ended it.
//
// Purpose: a study may be taken over by another searcher, and the host may end a search (early stopping, time budget).
//   Both limit which events of the journal a strategy has received. A resumed study replays those events and no others.
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

// The place where the host ended a search, and the reason. The journal has later events of the search that the searcher
// never received.
struct SearchEnd {
  uint64_t first_withheld = 0;  // the sequence number of the first such event
  std::string reason;
  bool of_time = false;  // the time budget was spent; if a new one is given, the search goes on
};

struct Search {
  uint64_t first_event = 0;  // the start event; all later events follow from it
  uint64_t first_trial = 0;  // earlier trials are observations to it
  std::string plugin;        // id and version, for people; empty: the searcher that the plan names
  std::optional<SearchEnd> end;
  uint64_t counts_from = 0;  // early stopping counts no earlier trial
  // The study was taken up again after this many events: what failed before gets a new chance.
  uint64_t mended_at = 0;
};

class Searches {
 public:
  Searches() : all_(1) {}
  // `stored`: the journal's meta row "searches"; nullopt: a study with its first searcher.
  explicit Searches(const std::optional<Json>& stored);

  const Search& current() const { return all_.back(); }
  bool was_ended_by_host() const { return current().end.has_value(); }

  // `before`: id and version of the searcher until now, which the plan names no longer.
  void take_over(uint64_t first_event, uint64_t first_trial, const PluginInfo& plugin, const std::string& before);
  void end(SearchEnd end) { all_.back().end = std::move(end); }
  // The search goes on, and early stopping counts only the trials from `next_trial` on.
  void go_on(uint64_t next_trial);
  void give_new_chance(uint64_t next_event) { all_.back().mended_at = next_event; }
  // The events from `first` on are lost: a searcher that had only those begins again.
  void forget_events_from(uint64_t first, uint64_t trials);

  // The names of all searchers, in their order; empty if there was only one, or if the name of the first is not known.
  std::vector<std::string> names() const;
  Json to_json() const;

 private:
  std::vector<Search> all_;  // never empty
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_SEARCHES_H_
