// The highest moment of one forward and backward with recomputation: adds up what is held while the backward of each
// layer runs, segment by segment, and takes the largest sum.
#include "dsat/cost/activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "dsat/error.h"

namespace dsat::cost {
namespace {

// The peak of layers from `begin` up to `end` that all have their activations, with `held` beside them: backward is at
// each of them in turn, turns the gradient of its output into that of its input, and those behind it are gone.
double highest_moment(const std::vector<LayerActivations>& layers, size_t begin, size_t end, double held) {
  double peak = held;
  for (size_t i = begin; i < end; ++i) {
    held += layers[i].kept_bytes;
    // Two of the output, since the shortcut's waits for the branch's where a layer is residual; the output itself is
    // gone by then.
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
    // The segment's output and its gradient are held until its backward has ended.
    peak = std::max(peak, highest_moment(layers, begin, end, inputs + 2 * layers[end - 1].output_bytes));
    begin = end;
  }
  // What lies behind the segments begins with the last one's output.
  if (begin > 0 && begin < layers.size()) inputs += layers[begin - 1].output_bytes;
  return std::max(peak, highest_moment(layers, begin, layers.size(), inputs));
}

}  // namespace dsat::cost
