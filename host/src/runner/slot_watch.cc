// Keeps the last failure of each trial with its slots, and for each slot the trials that failed there and completed
// elsewhere since one completed there.
#include "runner/slot_watch.h"

#include <fmt/format.h>

#include <utility>

namespace dsat::host {

namespace {

// A script may fail by accident, say in one of 20 runs. Three in a row on one slot happen once in 8,000 runs.
constexpr size_t kEnoughTrials = 3;

}  // namespace

SlotWatch::Finding SlotWatch::add(const TrialEnd& end, const std::vector<Slot>& slots) {
  const auto before = failures_.extract(end.id);
  if (end.outcome == Outcome::failed && !end.infrastructure) failures_[end.id] = {slots, end.reason};
  if (end.outcome == Outcome::completed) {
    for (const Slot& slot : slots) suspected_by_.erase(slot.name());
  }
  Finding finding;
  if (before.empty() || !before.mapped().is_awaited) return finding;
  std::vector<Slot> broken;
  std::set<uint64_t> trials;
  for (const Slot& slot : before.mapped().slots) {
    std::set<uint64_t>& suspected_by = suspected_by_[slot.name()];
    if (end.outcome == Outcome::completed) suspected_by.insert(end.id);
    const bool is_broken = suspected_by.size() >= kEnoughTrials;
    (is_broken ? broken : finding.restored).push_back(slot);
    if (is_broken) trials.insert(suspected_by.begin(), suspected_by.end());
  }
  if (!broken.empty()) {
    finding.notice = fmt::format(
        "{} {} no more trials: trials {} failed there and completed elsewhere ({}); --exclude leaves out what is "
        "broken",
        broken.size() == 1 ? "slot " + broken.front().name() : "slots " + slot_list(broken),
        broken.size() == 1 ? "gets" : "get", fmt::join(trials, ", "), before.mapped().reason);
  }
  return finding;
}

std::vector<Slot> SlotWatch::failed_on(uint64_t id) const {
  const auto failure = failures_.find(id);
  return failure == failures_.end() ? std::vector<Slot>() : failure->second.slots;
}

}  // namespace dsat::host
