// What the user says about the tuning space, before it is laid out by stage: lists in the configuration and entries of
// the space file, checked one by one.
#ifndef DSAT_CONFIG_SRC_SPACE_ENTRIES_H_
#define DSAT_CONFIG_SRC_SPACE_ENTRIES_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::config {

struct SpaceEntry {
  std::string key;                         // dotted
  std::vector<Json> values;                // scalars, no two alike, 5e8 as 500000000
  std::optional<std::vector<int>> stages;  // nullopt: wherever DeepSpeed reads the key
  std::string origin;                      // the name of the configuration or of the space file, for messages
};

// The axes that lists in `config` make; each list is replaced there by its first value. A stage of "all" makes no
// entry and is taken out. Lists that DeepSpeed itself wants, and lists in keys it hands on or does not know, stay.
// Messages begin with `origin`.
std::vector<SpaceEntry> take_user_entries(Json& config, const std::string& origin);

// The entries of a space file (null: none); messages begin with `origin`.
std::vector<SpaceEntry> read_space_file(const Json& file, const std::string& origin);

// Whether two values mean the same to DeepSpeed.
bool same_value(const Json& a, const Json& b);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_SPACE_ENTRIES_H_
