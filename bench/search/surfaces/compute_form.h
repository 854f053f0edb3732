// The time of a pass over one device's micro batch, in one of several drawn shapes.
//
// Purpose: real devices saturate in different ways, and a bench whose curves all have one shape judges a guess of it.
// Sources: wave and tile quantisation are those of NVIDIA's Matrix Multiplication Background User's Guide; the
//   roofline is Williams, Waterman and Patterson (2009); the other shapes are the usual saturation curves.
// Threading: pure functions. Units: seconds, samples. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_COMPUTE_FORM_H_
#define DSAT_BENCH_SEARCH_SURFACES_COMPUTE_FORM_H_

#include <cstdint>
#include <vector>

namespace dsat::bench {

// How the rate of compute grows with the micro batch m; u is the share of the full rate.
enum class Saturation {
  hyperbola,    // u = m / (m + half)
  hill,         // u = 1 / (1 + (half / m)^exponent), flatter than the hyperbola
  exponential,  // u = 1 - 2^(-m / half)
  power,        // u = (m / half)^exponent up to m = half, then 1
  roofline,     // a floor: below m = half the weights' reading takes all the time
};

// A group of kernels that runs in whole waves of tiles: time goes with ceil(tiles / multiprocessors).
struct TiledKernels {
  double share = 0;  // of the compute time
  double tiles_per_sample = 1;
};

// Another algorithm within [from, below): it is faster by `speedup`, or slower where that is below 1.
struct AlgorithmRange {
  int64_t from = 0, below = 0;
  double speedup = 1;
};

struct ComputeForm {
  double sample_s = 1e-2;  // of a forward, at the full rate
  Saturation saturation = Saturation::hyperbola;
  double half = 2, exponent = 1;
  double multiprocessors = 108;
  std::vector<TiledKernels> kernels;
  int64_t multiple = 1;   // micro batches that are no multiple of it are slower
  double misfit = 0;      // by this share
  double drop_at = 0;     // a cache is full from here on (0: never), and compute
  double drop = 0;        // slows by this share
  double drop_width = 1;  // within so many doublings
  double throttle = 0;    // a device at full power slows by this share
  std::vector<AlgorithmRange> algorithms;
  double launch_s = 0;        // a host that launches kernels takes so long for a forward
  double launch_power = 8;    // how sharp the bend between host and device is
  double backward_ratio = 2;  // of backward to forward
  double backward_tiles = 1;  // tiles of backward's kernels for each one of forward's
  double copy_s = 0;          // of one sample from the host, before each forward
};

double forward_compute_s(const ComputeForm& form, int64_t micro_batch);
double backward_compute_s(const ComputeForm& form, int64_t micro_batch);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_COMPUTE_FORM_H_
