// The user's wishes for the tuning space: lists in the configuration and entries of the space file, checked one by one.
#ifndef DSAT_CONFIG_SRC_SPACE_ENTRIES_H_
#define DSAT_CONFIG_SRC_SPACE_ENTRIES_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::config {

struct SpaceEntry {
  std::string key;                         // dotted
  std::vector<Json> values;                // scalars, all different; 5e8 is 500000000
  std::optional<std::vector<int>> stages;  // nullopt: all stages at which DeepSpeed reads the key
  std::string origin;                      // name of the configuration or the space file, for messages
  std::vector<Condition> conditions{};     // of the space file, as written
};

// Takes the axes out of `config`: each list is replaced by its first value, and a stage of "all" is removed without an
// entry. Lists stay if DeepSpeed itself wants one, passes the key on, or does not know the key. Messages begin with
// `origin`.
std::vector<SpaceEntry> take_user_entries(Json& config, const std::string& origin);

// The entries of a space file (null: none). Messages begin with `origin`.
std::vector<SpaceEntry> read_space_file(const Json& file, const std::string& origin);

// Do two values mean the same to DeepSpeed?
bool same_value(const Json& a, const Json& b);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_SPACE_ENTRIES_H_
