// How far a misspelt name is from the known ones: what suggestions are made from. Threading: pure functions.
#ifndef DSAT_BASE_SPELLING_H_
#define DSAT_BASE_SPELLING_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dsat {

// Damerau-Levenshtein distance (neighbouring letters swapped count one; no letter is edited twice). A distance of
// `enough` or more is `enough`: the search for it ends early.
size_t edit_distance(std::string_view a, std::string_view b, size_t enough = SIZE_MAX);

// How many edits still count as a slip in a typed name: two, or a quarter of its letters if it is long.
size_t slip_tolerance(std::string_view typed);

// The known name nearest to `typed`, at most `tolerance` edits away, the first of several; empty: none is that near.
std::string_view nearest_name(std::string_view typed, const std::vector<std::string_view>& known, size_t tolerance);

}  // namespace dsat

#endif  // DSAT_BASE_SPELLING_H_
