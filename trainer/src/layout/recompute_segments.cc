// Cuts a chain of layers into segments of nearly equal length.
// Without a count there are about as many segments as each has layers: the square root.
#include "layout/recompute_segments.h"

#include <algorithm>
#include <cmath>

namespace dsat::trainer {

Segments segments_of(size_t layers, int64_t count) {
  size_t wanted = static_cast<size_t>(count);
  if (count <= 0) wanted = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(layers))));
  wanted = std::clamp<size_t>(wanted, 1, layers);
  Segments segments;
  for (size_t i = 0; i < wanted; ++i) segments.push_back({i * layers / wanted, (i + 1) * layers / wanted});
  return segments;
}

Segments segments_of_interval(size_t layers, int64_t interval) {
  const auto most = static_cast<size_t>(interval);
  return segments_of(layers, static_cast<int64_t>((layers + most - 1) / most));
}

}  // namespace dsat::trainer
