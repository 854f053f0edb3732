// A trial's shares are placed largest first, each on the fullest host that has room.
#include "slots/slot_pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace dsat::host {

std::string id_list(const std::vector<Slot>& slots) {
  std::vector<std::string> ids;
  for (const Slot& slot : slots) ids.push_back(slot.id);
  return fmt::format("{}", fmt::join(ids, ","));
}

std::string slot_list(const std::vector<Slot>& slots) {
  std::string text;
  const Slot* before = nullptr;
  for (const Slot& slot : slots) {
    const bool same_host = before != nullptr && before->host == slot.host;
    if (same_host) {
      text += "," + slot.id;
    } else {
      text += (before != nullptr ? " " : "") + slot.name();
    }
    before = &slot;
  }
  return text;
}

int TrialShape::slots() const { return std::accumulate(node_slots.begin(), node_slots.end(), 0); }

SlotPool::SlotPool(std::vector<Slot> slots, std::optional<int> max_in_use)
    : max_in_use_(max_in_use.value_or(static_cast<int>(slots.size()))) {
  for (Slot& slot : slots) {
    auto host = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& h) { return h.name == slot.host; });
    if (host == hosts_.end()) host = hosts_.insert(hosts_.end(), Host{slot.host, {}, 0});
    host->entries.push_back(entries_.size());
    ++host->free;
    entries_.push_back({std::move(slot), false});
  }
}

template <class F>
void SlotPool::for_each(const std::vector<Slot>& slots, const F& f) {
  for (const Slot& slot : slots) {
    for (Host& host : hosts_) {
      if (host.name != slot.host) continue;
      for (const size_t index : host.entries) {
        if (entries_[index].slot.id == slot.id) f(host, entries_[index]);
      }
    }
  }
}

SlotPool SlotPool::without_trials() const {
  SlotPool pool = *this;
  pool.in_use_ = 0;
  for (Host& host : pool.hosts_) {
    host.free = 0;
    for (const size_t index : host.entries) {
      Entry& entry = pool.entries_[index];
      entry.taken = entry.withheld || entry.held;
      if (entry.held) ++pool.in_use_;
      if (!entry.taken) ++host.free;
    }
  }
  return pool;
}

bool SlotPool::withhold(const std::vector<Slot>& slots, const std::vector<TrialShape>& shapes) {
  SlotPool pool = *this;
  bool all_free = true;
  pool.for_each(slots, [&](Host& host, Entry& entry) {
    if (entry.withheld) return;
    all_free = all_free && !entry.taken;
    entry.taken = entry.withheld = true;
    --host.free;
    ++pool.out_of_use_;
  });
  const auto is_lost = [&](const TrialShape& shape) { return has_place_for(shape) && !pool.has_place_for(shape); };
  if (!all_free || std::any_of(shapes.begin(), shapes.end(), is_lost)) return false;
  pool.shapes_ = shapes;
  *this = std::move(pool);
  return true;
}

void SlotPool::restore(const std::vector<Slot>& slots) {
  for_each(slots, [&](Host& host, Entry& entry) {
    if (!entry.withheld) return;
    entry.taken = entry.withheld = false;
    ++host.free;
    --out_of_use_;
  });
}

void SlotPool::restore_what_is_needed() {
  std::vector<Slot> withheld;
  for (const Entry& entry : entries_) {
    if (entry.withheld) withheld.push_back(entry.slot);
  }
  SlotPool pool = *this;
  pool.restore(withheld);
  const auto is_missed = [&](const TrialShape& shape) { return !has_place_for(shape) && pool.has_place_for(shape); };
  if (std::any_of(shapes_.begin(), shapes_.end(), is_missed)) *this = std::move(pool);
}

void SlotPool::hold(const std::vector<Slot>& slots) {
  for_each(slots, [](Host&, Entry& entry) { entry.held = entry.taken && !entry.withheld; });
  restore_what_is_needed();
}

void SlotPool::retire(const std::string& host) {
  std::vector<Slot> withheld;
  for (const Entry& entry : entries_) {
    if (entry.withheld && entry.slot.host == host) withheld.push_back(entry.slot);
  }
  restore(withheld);
  const auto it = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& h) { return h.name == host; });
  if (it == hosts_.end()) return;
  out_of_use_ += static_cast<int>(it->entries.size());
  in_use_ -= static_cast<int>(it->entries.size()) - it->free;
  for (const size_t index : it->entries) entries_[index].taken = true;
  hosts_.erase(it);
  restore_what_is_needed();
}

int SlotPool::free() const { return std::min(static_cast<int>(entries_.size()) - out_of_use_, max_in_use_) - in_use_; }

std::vector<Slot> SlotPool::free_slots() const {
  std::vector<Slot> slots;
  for (const Entry& entry : entries_) {
    if (!entry.taken) slots.push_back(entry.slot);
  }
  return slots;
}

std::vector<std::pair<std::string, int>> SlotPool::hosts() const {
  std::vector<std::pair<std::string, int>> hosts;
  for (const Host& host : hosts_) hosts.emplace_back(host.name, static_cast<int>(host.entries.size()));
  return hosts;
}

// The largest share is placed first: a host with room for it has room for smaller ones, so a placement is found if
// there is one.
std::optional<std::vector<Slot>> SlotPool::take(const TrialShape& shape) {
  if (shape.slots() > free()) return std::nullopt;
  std::vector<int> shares = shape.node_slots;
  std::sort(shares.begin(), shares.end(), std::greater<>());
  std::vector<int> share_of(hosts_.size(), 0);
  for (const int share : shares) {
    size_t best = hosts_.size();
    for (size_t h = 0; h < hosts_.size(); ++h) {
      const bool has_room = share_of[h] == 0 && hosts_[h].free >= share;
      if (has_room && (best == hosts_.size() || hosts_[h].free < hosts_[best].free)) best = h;
    }
    if (best == hosts_.size()) return std::nullopt;
    share_of[best] = share;
  }
  std::vector<Slot> taken;
  for (size_t h = 0; h < hosts_.size(); ++h) {
    for (const size_t index : hosts_[h].entries) {
      if (share_of[h] == 0) break;
      if (entries_[index].taken) continue;
      entries_[index].taken = true;
      taken.push_back(entries_[index].slot);
      --hosts_[h].free;
      --share_of[h];
      ++in_use_;
    }
  }
  return taken;
}

void SlotPool::give_back(const std::vector<Slot>& slots) {
  bool were_held = false;
  for_each(slots, [&](Host& host, Entry& entry) {
    if (!entry.taken || entry.withheld) return;
    were_held = were_held || entry.held;
    entry.taken = entry.held = false;
    ++host.free;
    --in_use_;
  });
  // A shape that had no place while slots were held may now have one, together with withheld slots.
  if (were_held) restore_what_is_needed();
}

}  // namespace dsat::host
