// The effect of tunable keys on memory.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_COST_POSTERIOR_MEMORY_KEYS_H_
#define DSAT_COST_POSTERIOR_MEMORY_KEYS_H_

#include <string>

namespace dsat::cost {

enum class MemoryEffect {
  none,
  read,     // Setup contains the key, and setups are compared by it
  takes,    // larger values take more memory
  unknown,  // also for a user's own keys
};

MemoryEffect memory_effect(const std::string& key);

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_MEMORY_KEYS_H_
