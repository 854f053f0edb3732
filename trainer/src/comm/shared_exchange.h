// Rounds in which every rank of a group, all on this host, shows the others what it has written.
//
// A round: write into own(), meet(), read of(...). One meeting a round is enough, because slots are used in turn: who
// has come to a meeting has read all that was shown at the one before, so what was shown there may be overwritten.
// Threading: one thread at a time. Errors: PeerLost, when a rank has ended that has not come.
#ifndef DSAT_TRAINER_COMM_SHARED_EXCHANGE_H_
#define DSAT_TRAINER_COMM_SHARED_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/shared_region.h"

namespace dsat::trainer {

class Exchange {
 public:
  // At a place that was taken for this group, by each of its ranks. `members`: their numbers at the launcher;
  // `position`: this rank's among them.
  Exchange(SharedRegion& region, int place, std::vector<int> members, int position);
  ~Exchange() { region_.leave_place(place_); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  static constexpr size_t kBytes = SharedRegion::kSlotBytes;  // that a rank can show in a round
  const std::vector<int>& members() const { return members_; }
  int position() const { return position_; }

  char* own() const { return region_.slot(place_, position_, static_cast<int>((round_ + 1) % 2)); }
  // Waits until all ranks have written.
  void meet();
  // What that rank has shown at the last meeting; until this rank comes to the next one.
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
