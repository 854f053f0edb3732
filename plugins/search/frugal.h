// The configurations of a stage that need the least memory: if they do not fit at the smallest micro batch, none does.
//
// Each axis takes the value that needs the least. The effect of some axes is unknown, and they have two variants: the
// first value of each, and the last.
// Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_SEARCH_FRUGAL_H_
#define DSAT_PLUGINS_SEARCH_FRUGAL_H_

#include <vector>

#include "search/configurations.h"

namespace dsat::search {

// One configuration, or two if the effect of an axis is unknown.
std::vector<Configuration> frugal_configurations(const config::StageSpace& stage);

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_FRUGAL_H_
