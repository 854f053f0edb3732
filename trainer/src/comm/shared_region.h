// Memory that the ranks of one launcher share, all of them on this host: places where groups of ranks exchange data.
//
// Mapped before the ranks are forked: it needs no name and is gone with the last of them, however they end. A page that
// nobody has touched takes no memory. A place serves one group of ranks: a counter and two slots for each of them.
// Ownership: the launcher's process makes the one region, its forks inherit it. Threading: any thread of any of these
// processes; what lies in a slot is guarded by the counters (shared_exchange.h). Errors: none.
#ifndef DSAT_TRAINER_COMM_SHARED_REGION_H_
#define DSAT_TRAINER_COMM_SHARED_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dsat::trainer {

// `value`: the round that a rank has reached; `sleepers`: ranks that sleep until it changes. It has a cache line of its
// own, so that waiting for one rank does not slow another one.
struct alignas(64) SharedCounter {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;
};

class SharedRegion {
 public:
  static constexpr size_t kSlotBytes = size_t{1} << 20;
  static constexpr int kPlaces = 64;
  static constexpr int kNoPlace = -1;

  // Becomes the region of this process and of all that it forks. A machine that refuses the memory leaves it without
  // places.
  explicit SharedRegion(int ranks);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  // nullptr: this process was started by another launcher.
  static SharedRegion* of_this_process();

  // The launcher calls set_ended(), because it is the first to know.
  void set_ended(int rank);
  bool has_ended(int rank) const;

  // Takes a place for a group of `users` ranks, with counters at 0; kNoPlace: all are taken. It is free again when each
  // of them has called leave_place().
  int take_place(int users);
  void leave_place(int place);
  SharedCounter& counter(int place, int position) const;
  char* slot(int place, int position, int half) const;

 private:
  struct Header;
  char* place_begin(int place) const;

  int ranks_;
  size_t head_bytes_, place_bytes_, bytes_;
  char* base_ = nullptr;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_SHARED_REGION_H_
