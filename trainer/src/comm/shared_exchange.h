// Rounds in which every rank of a group, all on this host, lets the others read what it has written.
//
// A round: write into own(), meet(), read of(...). One meeting a round is enough, because each rank has two slots and
// uses them in turn: a rank that comes to a meeting has read all slots of the round before, so these may be
// overwritten. Threading: one thread at a time. Errors: PeerLost, when a rank has ended before it came to the meeting.
#ifndef DSAT_TRAINER_COMM_SHARED_EXCHANGE_H_
#define DSAT_TRAINER_COMM_SHARED_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/shared_region.h"

namespace dsat::trainer {

class SharedExchange {
 public:
  // Every rank of the group makes one, for a place of the region that was taken for the group. `members`: the ranks'
  // numbers at the launcher; `position`: this rank's among them. Borrows the region.
  SharedExchange(SharedRegion& region, int place, std::vector<int> members, int position);
  ~SharedExchange() { region_.leave_place(place_); }
  SharedExchange(const SharedExchange&) = delete;
  SharedExchange& operator=(const SharedExchange&) = delete;

  static constexpr size_t kBytes = SharedRegion::kSlotBytes;  // what a rank can write in a round, at most
  const std::vector<int>& members() const { return members_; }
  int position() const { return position_; }

  char* own() const { return region_.slot(place_, position_, static_cast<int>((round_ + 1) % 2)); }
  // Waits until all ranks have written.
  void meet();
  // What the rank at `position` had written at the last meeting; valid until this rank comes to the next one.
  const char* of(int position) const { return region_.slot(place_, position, static_cast<int>(round_ % 2)); }

 private:
  void wait_for(int position);

  SharedRegion& region_;
  int place_;
  std::vector<int> members_;
  int position_;
  uint32_t round_ = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_SHARED_EXCHANGE_H_
