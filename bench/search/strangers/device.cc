// A matrix product takes the best of a few tile shapes, each with whole waves; element by element work takes its bytes.
#include "search/strangers/device.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dsat::bench {
namespace {

struct Tile {
  double rows, columns, rate;  // rate: share of the peak within a full wave
};
constexpr std::array<Tile, 3> kTiles{{{256, 128, 0.8}, {128, 128, 0.7}, {64, 64, 0.45}}};

double product_s(const Device& device, double rows, double columns, double inner) {
  double best_s = 1e30;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns);
    const double waves = std::ceil(tiles / device.multiprocessors);
    const double tile_s = 2 * tile.rows * tile.columns * inner * device.multiprocessors / (device.flop_s * tile.rate);
    best_s = std::min(best_s, waves * tile_s);
    if (device.one_tile_size) break;
  }
  const double bytes = kBytes16 * (rows * inner + inner * columns + rows * columns);
  return std::max(best_s, bytes / device.memory_bytes_s);
}

double elementwise_s(const Device& device, double elements, double passes) {
  return kBytes16 * elements * passes / device.memory_bytes_s;
}

}  // namespace

LayerTimes forward_of(const Network& network, const Device& device, int64_t micro_batch) {
  constexpr double kAttentionRate = 0.4, kAttentionPasses = 9, kMlpPasses = 14, kLossPasses = 7;
  const double tokens = static_cast<double>(micro_batch) * network.sequence, width = network.hidden;
  const double scores = 2 * tokens * network.sequence * width / (kAttentionRate * device.flop_s);  // causal
  const double unfused = network.flash ? 0 : elementwise_s(device, tokens * network.sequence * width / 64, 5);
  LayerTimes times;
  times.attention_s = product_s(device, tokens, 3 * width, width) + product_s(device, tokens, width, width) + scores +
                      unfused + elementwise_s(device, tokens * width, kAttentionPasses);
  times.mlp_s = product_s(device, tokens, 4 * width, width) + product_s(device, tokens, width, 4 * width) +
                elementwise_s(device, tokens * width, kMlpPasses);
  times.head_s = product_s(device, tokens, network.vocabulary, width) +
                 elementwise_s(device, tokens * network.vocabulary, kLossPasses);
  const double host_s = device.kernels / 2 * device.launch_s;
  const double slower = micro_batch % device.padded_to != 0 ? 1 + device.padding_cost : 1;
  for (double* half_s : {&times.attention_s, &times.mlp_s}) *half_s = std::max(slower * *half_s, host_s);
  times.head_s = std::max(slower * times.head_s, host_s);
  return times;
}

}  // namespace dsat::bench
