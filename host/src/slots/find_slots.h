// Finds the slots of a study: this machine's devices or a hostfile, limited by --include and --exclude.
// Threading: pure except for reading the hostfile. Errors: dsat::Error.
#ifndef DSAT_HOST_SLOTS_FIND_SLOTS_H_
#define DSAT_HOST_SLOTS_FIND_SLOTS_H_

#include <vector>

#include "slots/slots.h"

namespace dsat::host {

// Slots of this machine have no host name, even if a hostfile has one. `notices` gets messages for people.
std::vector<Slot> find_slots(const Devices& devices, const SlotRequest& request, std::vector<std::string>& notices);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_FIND_SLOTS_H_
