// binary adds nothing but its options to the common search: the binary search of search/lineage_search.h is its method.
// The first idle lineage goes on, else a new one begins.
#include "binary/binary.h"

namespace dsat {

Descriptor Binary::descriptor() {
  return {
      "dsat.binary",
      "binary",
      "1.0.0",
      "binary search for the largest micro batch of random configurations",
      {OptionSpec::number("search-range-factor", 1.0, "upper end of a search, as a multiple of the expected ceiling")
           .min(0.01)},
      kStateVersion};
}

}  // namespace dsat
