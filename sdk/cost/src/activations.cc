// Adds up the memory at the backward of each layer, segment by segment, and takes the largest sum.
#include "dsat/cost/activations.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/error.h"

namespace dsat::cost {
namespace {

// The peak during the backward of the layers from `begin` up to `end`, with `held` bytes beside them. At the start all
// these layers hold their activations. The backward of a layer turns the gradient of its output into the gradient of
// its input, and then frees its activations.
double highest_moment(const std::vector<LayerActivations>& layers, size_t begin, size_t end, double held) {
  double peak = held;
  for (size_t i = begin; i < end; ++i) {
    held += layers[i].kept_bytes;
    // The output's gradient counts twice: in a residual layer the gradient of the shortcut waits for the gradient of
    // the branch. The output itself is already free.
    const double gradients =
        layers[i].output_bytes + (i > 0 ? layers[i - 1].output_bytes : 0) + layers[i].largest_parameter_bytes;
    peak = std::max(peak, held + gradients + layers[i].working_bytes);
  }
  return peak;
}

}  // namespace

double activation_peak_bytes(const std::vector<LayerActivations>& layers, const std::vector<size_t>& segment_ends) {
  double inputs = 0, peak = 0;
  size_t begin = 0;
  for (const size_t end : segment_ends) {
    if (end <= begin || end > layers.size()) {
      throw Error(fmt::format("a segment of layers ends at {}; it must lie after {} and at most at {}", end, begin,
                              layers.size()));
    }
    if (begin > 0) inputs += layers[begin - 1].output_bytes;
    // The segment's output and its gradient stay until the segment's backward has ended.
    peak = std::max(peak, highest_moment(layers, begin, end, inputs + 2 * layers[end - 1].output_bytes));
    begin = end;
  }
  // The layers after the segments begin with the output of the last segment.
  if (begin > 0 && begin < layers.size()) inputs += layers[begin - 1].output_bytes;
  return std::max(peak, highest_moment(layers, begin, layers.size(), inputs));
}

}  // namespace dsat::cost
