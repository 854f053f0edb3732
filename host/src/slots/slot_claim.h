// Lets studies on one machine notice that they use the same devices. Their trials slow each other down and share
// memory, and otherwise no study would notice.
//
// A claim is a socket for each device in Linux's abstract namespace, with a name that everybody can list. Nothing is on
// disk, and the kernel removes it with the process. Containers with their own network do not see each other. A device
// is identified by its UUID, or by its index if the vendor's tool gives no UUID. Threading: any thread. Ownership: a
// claim holds one descriptor per device. Errors: none; what cannot be claimed is not claimed.
#ifndef DSAT_HOST_SLOTS_SLOT_CLAIM_H_
#define DSAT_HOST_SLOTS_SLOT_CLAIM_H_

#include <optional>
#include <string>
#include <vector>

#include "slots/slots.h"

namespace dsat::host {

class SlotClaim {
 public:
  // Claims the devices of this machine among these slots. Without a backend there are none.
  SlotClaim(Backend backend, const std::vector<Slot>& slots);
  ~SlotClaim();
  SlotClaim(const SlotClaim&) = delete;
  SlotClaim& operator=(const SlotClaim&) = delete;

  // Returns a message for people with the devices that other studies use; nullopt: none.
  std::optional<std::string> notice_of_others() const;

 private:
  struct Claimed {
    std::string device;  // as in the socket's name
    std::string name;    // the slot's name
    int fd;
  };
  std::string prefix_;  // of the names of this claim's sockets
  Backend backend_;
  std::vector<Claimed> claimed_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_SLOT_CLAIM_H_
