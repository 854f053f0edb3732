// Slots, the number of them that a trial takes on each host, and which are in use.
// Threading: control thread; a pool is a plain value, and a copy shows what would fit.
#ifndef DSAT_HOST_SLOTS_SLOT_POOL_H_
#define DSAT_HOST_SLOTS_SLOT_POOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsat::host {

// A device of a host.
struct Slot {
  std::string id;              // for the visibility variable: an index, or a UUID if the caller used UUIDs
  std::optional<int> ordinal;  // index on its host, for `deepspeed --include`
  std::optional<uint64_t> memory_bytes;
  std::string host{};                // name in the hostfile; empty: this machine without a hostfile
  uint64_t memory_in_use_bytes = 0;  // used by other programs before the study
  std::string uuid{};                // of the device; empty: unknown
  std::string name() const { return host.empty() ? id : host + ":" + id; }
};

// Returns "0,1,2", the form of visibility variables.
std::string id_list(const std::vector<Slot>& slots);

// Returns "0,1,2", or "worker-1:0,1 worker-2:0" if hosts have names.
std::string slot_list(const std::vector<Slot>& slots);

// The number of slots on each node of a trial: {2, 2} is two GPUs on each of two nodes.
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
  // `max_in_use`: limit for all trials together; nullopt: no limit.
  SlotPool(std::vector<Slot> slots, std::optional<int> max_in_use);

  // Returns a placement with a different host for each node; nullopt: there is none now. It uses the fullest host with
  // room and its first free slots, so that large trials find empty hosts.
  std::optional<std::vector<Slot>> take(const TrialShape& shape);
  void give_back(const std::vector<Slot>& slots);

  // Keeps these slots from all trials until restore(). Returns false, and changes nothing, if a trial has one of them
  // or if one of these shapes (the study's) would have no place even without other trials.
  bool withhold(const std::vector<Slot>& slots, const std::vector<TrialShape>& shapes);
  void restore(const std::vector<Slot>& slots);

  // A trial has ended, but its processes cannot be ended and hold its slots until these are given back.
  void hold(const std::vector<Slot>& slots);

  // The host is gone: its slots are never given out again, even if they are given back.
  void retire(const std::string& host);

  int free() const;
  std::vector<Slot> free_slots() const;
  // Returns the hosts in the pool's order, with the number of their slots.
  std::vector<std::pair<std::string, int>> hosts() const;

 private:
  struct Entry {
    Slot slot;
    bool taken = false;  // by a trial, or withheld
    bool withheld = false;
    bool held = false;  // by processes of an ended trial
  };
  struct Host {
    std::string name;
    std::vector<size_t> entries;
    int free = 0;
  };

  SlotPool without_trials() const;
  // Returns whether there would be room once all trials have ended.
  bool has_place_for(const TrialShape& shape) const { return without_trials().take(shape).has_value(); }
  // Restores all withheld slots if a shape of the study has a place only with them.
  void restore_what_is_needed();
  // Calls f(host, entry) for each of these slots that the pool still has.
  template <class F>
  void for_each(const std::vector<Slot>& slots, const F& f);

  std::vector<Entry> entries_;
  std::vector<TrialShape> shapes_;  // of the study; set when slots are withheld
  std::vector<Host> hosts_;
  int max_in_use_;
  int in_use_ = 0;
  int out_of_use_ = 0;  // retired or withheld slots
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_SLOT_POOL_H_
