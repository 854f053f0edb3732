// Keeps the last failure of each trial with its slots. For each slot, keeps the trials that failed there and completed
// elsewhere since a trial last completed there.
#include "runner/slot_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace dsat::host {

namespace {

// A script may fail by accident, perhaps in one of 20 runs. Three such failures in a row on one slot occur once in
// 8,000 runs.
constexpr size_t kEnoughTrials = 3;

bool has(const std::vector<Slot>& slots, const Slot& slot) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& one) { return one.name() == slot.name(); });
}

// Writes slots as --exclude takes them.
std::string as_excluded(const std::vector<Slot>& slots) {
  std::vector<Slot> named = slots;
  for (Slot& slot : named) {
    if (slot.host.empty()) slot.host = "localhost";
  }
  std::string text = slot_list(named);
  std::replace(text.begin(), text.end(), ' ', '@');
  return text;
}

}  // namespace

SlotWatch::Finding SlotWatch::add(const TrialEnd& end, const std::vector<Slot>& slots, bool host_failed) {
  const auto before = failures_.extract(end.id);
  if (end.outcome == Outcome::failed && (!end.infrastructure || host_failed)) failures_[end.id] = {slots, end.reason};
  if (end.outcome == Outcome::completed) {
    for (const Slot& slot : slots) suspected_by_.erase(slot.name());
  }
  Finding finding;
  if (before.empty() || !before.mapped().is_awaited) return finding;
  std::set<uint64_t> trials;
  for (const Slot& slot : before.mapped().slots) {
    std::set<uint64_t>& suspected_by = suspected_by_[slot.name()];
    // The trial may have completed on the same slot, because a waiting slot is used if no other is left.
    if (end.outcome == Outcome::completed && !has(slots, slot)) suspected_by.insert(end.id);
    const bool is_broken = suspected_by.size() >= kEnoughTrials;
    (is_broken ? finding.broken : finding.restored).push_back(slot);
    if (is_broken) trials.insert(suspected_by.begin(), suspected_by.end());
  }
  const std::vector<Slot>& broken = finding.broken;
  if (!broken.empty()) {
    finding.notice = fmt::format(
        "{} {} no more trials: trials {} failed there and completed elsewhere ({}); exclude the slots from a new "
        "study with --exclude {}",
        broken.size() == 1 ? "slot " + broken.front().name() : "slots " + slot_list(broken),
        broken.size() == 1 ? "gets" : "get", fmt::join(trials, ", "), before.mapped().reason, as_excluded(broken));
  }
  return finding;
}

std::vector<Slot> SlotWatch::failed_on(uint64_t id) const {
  const auto failure = failures_.find(id);
  return failure == failures_.end() ? std::vector<Slot>() : failure->second.slots;
}

bool SlotWatch::any_awaited(const std::vector<Slot>& slots) const {
  return std::any_of(failures_.begin(), failures_.end(), [&](const auto& failure) {
    const auto& [id, last] = failure;
    return last.is_awaited &&
           std::any_of(last.slots.begin(), last.slots.end(), [&](const Slot& slot) { return has(slots, slot); });
  });
}

}  // namespace dsat::host
