// Cuts a chain into stages by number of layers or by parameters.
// By parameters: the smallest limit at which a greedy filling needs no more stages, found by bisection.
#include "layout/pipeline_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

// Stages of at most `limit` parameters each, filled from the front while enough layers remain for the others; empty
// when `limit` is too low.
Segments fill(const std::vector<int64_t>& parameters, size_t num_stages, int64_t limit) {
  Segments stages;
  size_t at = 0;
  for (size_t left = num_stages; left > 0; --left) {
    const size_t begin = at;
    int64_t held = 0;
    while (at + left <= parameters.size() && held + parameters[at] <= limit) held += parameters[at++];
    if (at == begin) return {};
    stages.push_back({begin, at});
  }
  return at == parameters.size() ? stages : Segments();
}

Segments balanced(const std::vector<int64_t>& parameters, size_t num_stages) {
  int64_t low = *std::max_element(parameters.begin(), parameters.end());
  int64_t high = std::accumulate(parameters.begin(), parameters.end(), int64_t{0});
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (fill(parameters, num_stages, middle).empty()) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return fill(parameters, num_stages, low);
}

}  // namespace

Segments pipeline_stages(const std::vector<int64_t>& parameters, int num_stages, PartitionMethod method) {
  if (num_stages < 1 || static_cast<size_t>(num_stages) > parameters.size()) {
    throw Error(fmt::format("pipeline.stages is {}: the model has {} layers, and each stage needs one at least",
                            num_stages, parameters.size()));
  }
  if (method == PartitionMethod::uniform) return segments_of(parameters.size(), num_stages);
  return balanced(parameters, static_cast<size_t>(num_stages));
}

}  // namespace dsat::trainer
