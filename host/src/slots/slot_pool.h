// Slots, how many of them a trial takes of how many hosts, and who has which now.
//
// Threading: control thread; a pool is a plain value that can be copied to see what would fit.
#ifndef DSAT_HOST_SLOTS_SLOT_POOL_H_
#define DSAT_HOST_SLOTS_SLOT_POOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsat::host {

// A device of a host.
struct Slot {
  std::string id;              // as the visibility variable takes it: an index, or a UUID where the caller named UUIDs
  std::optional<int> ordinal;  // its index on its host: what `deepspeed --include` takes
  std::optional<uint64_t> memory_bytes;
  std::string host{};                // as the hostfile calls it; empty: this machine, which needs no hostfile
  uint64_t memory_in_use_bytes = 0;  // by others, before the study begins
  std::string uuid{};                // the device's; empty: unknown
  std::string name() const { return host.empty() ? id : host + ":" + id; }
};

// "0,1,2": as a visibility variable takes them.
std::string id_list(const std::vector<Slot>& slots);

// "0,1,2", or "worker-1:0,1 worker-2:0" where hosts have names.
std::string slot_list(const std::vector<Slot>& slots);

// Slots on each of the nodes that a trial takes: {2, 2} is two GPUs on each of two nodes.
struct TrialShape {
  std::vector<int> node_slots{1};
  static TrialShape even(int nodes, int slots_per_node) {
    return {std::vector<int>(static_cast<size_t>(nodes), slots_per_node)};
  }
  int nodes() const { return static_cast<int>(node_slots.size()); }
  int slots() const;
  bool operator==(const TrialShape& other) const { return node_slots == other.node_slots; }
};

class SlotPool {
 public:
  // `max_in_use`: slots of all trials together; nullopt: no such limit.
  SlotPool(std::vector<Slot> slots, std::optional<int> max_in_use);

  // A whole placement: its nodes are different hosts. nullopt: there is none now. The fullest host that has room gives
  // its first free slots, so that large trials find hosts of their own.
  std::optional<std::vector<Slot>> take(const TrialShape& shape);
  void give_back(const std::vector<Slot>& slots);

  // No trial gets these slots until they are restored. False, and nothing is changed: a trial has one of them, or one
  // of these shapes (the study's) would have no room any more, even without other trials.
  bool withhold(const std::vector<Slot>& slots, const std::vector<TrialShape>& shapes);
  void restore(const std::vector<Slot>& slots);

  // A trial has ended, and processes of it that cannot be ended hold its slots until they are given back.
  void hold(const std::vector<Slot>& slots);

  // A host that is gone: none of its slots is given again; those that are taken come back to nobody.
  void retire(const std::string& host);

  int free() const;
  std::vector<Slot> free_slots() const;
  // The hosts in the order of the pool, with the number of their slots.
  std::vector<std::pair<std::string, int>> hosts() const;

 private:
  struct Entry {
    Slot slot;
    bool taken = false;  // by a trial, or withheld
    bool withheld = false;
    bool held = false;  // by what a trial has left
  };
  struct Host {
    std::string name;
    std::vector<size_t> entries;
    int free = 0;
  };

  SlotPool without_trials() const;
  // Is there room for it once all trials have ended?
  bool has_place_for(const TrialShape& shape) const { return without_trials().take(shape).has_value(); }
  // All that is withheld, if a shape of the study would have a place with it and has none without.
  void restore_what_is_needed();
  // Calls f(host, entry) for each of these slots that the pool still has.
  template <class F>
  void for_each(const std::vector<Slot>& slots, const F& f);

  std::vector<Entry> entries_;
  std::vector<TrialShape> shapes_;  // of the study; known once something was withheld
  std::vector<Host> hosts_;
  int max_in_use_;
  int in_use_ = 0;
  int out_of_use_ = 0;  // slots that are retired or withheld
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_SLOT_POOL_H_
