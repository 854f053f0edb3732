// Where the slots of a study come from: this machine's devices or a hostfile, less what --include and --exclude leave
// out.
//
// Threading: pure but for reading the hostfile. Errors: dsat::Error.
#ifndef DSAT_HOST_SLOTS_FIND_SLOTS_H_
#define DSAT_HOST_SLOTS_FIND_SLOTS_H_

#include <vector>

#include "slots/slots.h"

namespace dsat::host {

// Slots of this machine have no host name, whatever a hostfile calls it. `notices` gets what people should read once.
std::vector<Slot> find_slots(const Devices& devices, const SlotRequest& request, std::vector<std::string>& notices);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_FIND_SLOTS_H_
