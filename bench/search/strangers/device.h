// The time of a transformer's layer on one device, kernel by kernel: matrix products in whole waves of tiles, or at the
// speed of the memory, and never faster than the host launches them.
//
// Sources: tiles and waves: NVIDIA's Matrix Multiplication Background User's Guide; memory bound: the roofline of
//   Williams, Waterman and Patterson (2009); FLOP of a layer: Narayanan et al., Efficient Large-Scale Language Model
//   Training on GPU Clusters; launches of 5 to 10 microseconds: PyTorch's eager mode.
// Threading: pure functions. Units: seconds, FLOP/s, bytes. Errors: none.
#ifndef DSAT_BENCH_SEARCH_STRANGERS_DEVICE_H_
#define DSAT_BENCH_SEARCH_STRANGERS_DEVICE_H_

#include <cstdint>

namespace dsat::bench {

constexpr double kBytes16 = 2;  // of a 16-bit element

struct Network {
  double layers = 24, hidden = 1024, sequence = 1024, vocabulary = 50'000;
  bool recomputed = false;  // activations between layers alone are kept
  bool flash = true;        // attention's scores are not kept
  double layer_params() const { return 12 * hidden * hidden + 13 * hidden; }
  double head_params() const { return vocabulary * hidden; }  // shared with the embedding
  double params() const { return layers * layer_params() + head_params(); }
};

struct Device {
  double multiprocessors = 108, flop_s = 3.1e14, memory_bytes_s = 1.5e12, memory_bytes = 40e9;
  double launch_s = 6e-6;      // of a kernel
  double kernels = 14;         // of a layer's forward
  bool one_tile_size = false;  // a library without small tiles
  int64_t padded_to = 1;       // a micro batch that is no multiple of this
  double padding_cost = 0;     // slows by this share
};

// Forward of half a layer each, and of the head with its loss.
struct LayerTimes {
  double attention_s = 0, mlp_s = 0, head_s = 0;
};
LayerTimes forward_of(const Network& network, const Device& device, int64_t micro_batch);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STRANGERS_DEVICE_H_
