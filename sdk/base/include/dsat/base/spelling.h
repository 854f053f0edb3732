// The distance of a misspelt name from the known names, for suggestions. Threading: pure functions.
#ifndef DSAT_BASE_SPELLING_H_
#define DSAT_BASE_SPELLING_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dsat {

// Damerau-Levenshtein distance: a swap of neighbouring letters counts one, and no letter is edited twice. The search
// ends at `enough`, which then is the answer.
size_t edit_distance(std::string_view a, std::string_view b, size_t enough = SIZE_MAX);

// The number of edits that still count as a slip: two, or a quarter of the letters of a long name.
size_t slip_tolerance(std::string_view typed);

// The known name nearest to `typed`, the first of several. Empty: none is within `tolerance` edits.
std::string_view nearest_name(std::string_view typed, const std::vector<std::string_view>& known, size_t tolerance);

}  // namespace dsat

#endif  // DSAT_BASE_SPELLING_H_
