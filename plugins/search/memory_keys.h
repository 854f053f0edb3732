// The effect of tunable keys on memory.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_SEARCH_MEMORY_KEYS_H_
#define DSAT_PLUGINS_SEARCH_MEMORY_KEYS_H_

#include <string>

namespace dsat::search {

enum class MemoryEffect {
  none,
  read,     // cost::Setup contains the key, and setups are compared by it
  takes,    // larger values take more memory
  unknown,  // also for a user's own keys
};

MemoryEffect memory_effect(const std::string& key);

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_MEMORY_KEYS_H_
