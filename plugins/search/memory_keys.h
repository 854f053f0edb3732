// Which tunable keys bear on memory, and where that is known.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_SEARCH_MEMORY_KEYS_H_
#define DSAT_PLUGINS_SEARCH_MEMORY_KEYS_H_

#include <string>

namespace dsat::search {

enum class MemoryEffect {
  none,
  read,     // cost::Setup has it, and setups are compared by it
  takes,    // larger values take more
  unknown,  // of keys of the user's own, too
};

MemoryEffect memory_effect(const std::string& key);

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_MEMORY_KEYS_H_
