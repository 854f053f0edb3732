// Tells studies of one machine that they use the same devices.
//
// Purpose: trials of two studies on one device slow each other down and share its memory, and neither study would
//   notice. A claim is a socket for each device in Linux's abstract namespace, under a name that everybody can list:
//   nothing lies on a disk, and the kernel takes it away with the process. Containers whose network is their own do not
//   see each other. A device is identified by its UUID, or by its index where the vendor's tool gives no other.
// Threading: any thread. Ownership: a claim holds one descriptor for each device. Errors: none; what cannot be claimed
//   is not.
#ifndef DSAT_HOST_SLOTS_SLOT_CLAIM_H_
#define DSAT_HOST_SLOTS_SLOT_CLAIM_H_

#include <optional>
#include <string>
#include <vector>

#include "slots/slots.h"

namespace dsat::host {

class SlotClaim {
 public:
  // The devices of this machine among these slots. Without a backend there are none.
  SlotClaim(Backend backend, const std::vector<Slot>& slots);
  ~SlotClaim();
  SlotClaim(const SlotClaim&) = delete;
  SlotClaim& operator=(const SlotClaim&) = delete;

  // For people: which of these devices other studies have claimed. nullopt: none.
  std::optional<std::string> notice_of_others() const;

 private:
  struct Claimed {
    std::string device;  // as a name has it
    std::string name;    // of the slot
    int fd;
  };
  std::string prefix_;  // of this claim's names
  Backend backend_;
  std::vector<Claimed> claimed_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_SLOT_CLAIM_H_
