// The time of a pass over one device's micro batch, in one of several drawn shapes.
//
// Purpose: real devices saturate in different ways. A bench with one shape would test a guess of that shape.
// Sources: wave and tile quantisation are those of NVIDIA's Matrix Multiplication Background User's Guide; the
//   roofline is Williams, Waterman and Patterson (2009); the other shapes are the usual saturation curves.
// Threading: pure functions. Units: seconds, samples. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_COMPUTE_FORM_H_
#define DSAT_BENCH_SEARCH_SURFACES_COMPUTE_FORM_H_

#include <cstdint>
#include <vector>

namespace dsat::bench {

// The growth of compute's rate with the micro batch m. u: share of the full rate.
enum class Saturation {
  hyperbola,    // u = m / (m + half)
  hill,         // u = 1 / (1 + (half / m)^exponent), flatter than the hyperbola
  exponential,  // u = 1 - 2^(-m / half)
  power,        // u = (m / half)^exponent up to m = half, then 1
  roofline,     // below m = half the time is constant: the weights have to be read
};

// A group of kernels that runs in whole waves of tiles: the time is proportional to ceil(tiles / multiprocessors).
struct TiledKernels {
  double share = 0;  // share of the compute time
  double tiles_per_sample = 1;
};

// Another algorithm within [from, below). It is faster by `speedup`, or slower if that is below 1.
struct AlgorithmRange {
  int64_t from = 0, below = 0;
  double speedup = 1;
};

struct ComputeForm {
  double sample_s = 1e-2;  // a forward at the full rate
  Saturation saturation = Saturation::hyperbola;
  double half = 2, exponent = 1;
  double multiprocessors = 108;
  std::vector<TiledKernels> kernels;
  int64_t multiple = 1;   // other micro batches than its multiples are slower
  double misfit = 0;      // by this share
  double drop_at = 0;     // from here on a cache is full (0: never), and compute
  double drop = 0;        // slows by this share
  double drop_width = 1;  // within this many doublings
  double throttle = 0;    // slowdown of a device at full power, as a share
  std::vector<AlgorithmRange> algorithms;
  double launch_s = 0;        // time of the host to launch the kernels of a forward
  double launch_power = 8;    // sharpness of the bend between host and device
  double backward_ratio = 2;  // of backward to forward
  double backward_tiles = 1;  // backward's tiles for each of forward's
  double copy_s = 0;          // copy of a sample from the host, before each forward
};

double forward_compute_s(const ComputeForm& form, int64_t micro_batch);
double backward_compute_s(const ComputeForm& form, int64_t micro_batch);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_COMPUTE_FORM_H_
