// How far a misspelt name is from a known one: what suggestions are made from. Threading: a pure function.
#ifndef DSAT_CONFIG_EDIT_DISTANCE_H_
#define DSAT_CONFIG_EDIT_DISTANCE_H_

#include <cstddef>
#include <string_view>

namespace dsat::config {

// Damerau-Levenshtein distance (neighbouring letters swapped count one; no letter is edited twice).
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_EDIT_DISTANCE_H_
