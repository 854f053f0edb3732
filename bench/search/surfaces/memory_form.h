// The peak of a device's memory by DeepSpeed's own allocations, and what an allocator makes of it.
//
// Source: docs/real-deepspeed.md, Memory: the reduce bucket is allocated whole (twice with overlap_comm at stages 1
//   and 2), allgather_bucket_size allocates nothing, stage 3 keeps gathered parameters by size and reuse distance.
//   Activations: Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models.
// Threading: pure functions. Units: bytes, elements, samples. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_MEMORY_FORM_H_
#define DSAT_BENCH_SEARCH_SURFACES_MEMORY_FORM_H_

#include <cstdint>
#include <vector>

#include "search/surfaces/surface.h"

namespace dsat::bench {

// What a model's parameters are, as the engine sees them.
struct ModelForm {
  double params = 1e9, trained = 1e9;
  double layers = 24;
  double small_size = 2048, small_total = 2e5;  // biases and norms: elements of one, and of all
  double matrix_size = 4e6;                     // elements of a trained weight matrix: no message is smaller
  double frozen_matrix_size = 0;                // of one that is not trained, where few are
  double element_bytes = 2, gradient_bytes = 2;
  double state_bytes = 12;  // a trained parameter's master copy and optimizer states
  bool bf16 = false;
};

// A workspace that an algorithm holds within [from, below).
struct WorkspaceRange {
  int64_t from = 0, below = 0;
  double bytes = 0;
};

struct MemoryForm {
  double fixed_bytes = 1e9;   // the context and the libraries' buffers
  double sample_bytes = 1e9;  // activations of a sample at micro batch 1
  double exponent = 1;        // activations go with m^exponent
  double padding = 0;         // samples are padded to the longest: activations grow by this share a doubling
  double logits_bytes = 0;    // of a sample, alive when backward begins
  double constant_bytes = 0;  // of activations, whatever the micro batch: one recomputed layer, a mask
  std::vector<WorkspaceRange> workspaces;
  double early_copy = 1;         // share of the reduction's copy that meets all activations
  double block_bytes = 2 << 20;  // the allocator takes whole blocks of this size
  double fragmentation = 0;      // of activations and gathered parameters, and
  double variety = 0;            // more where sizes vary: without contiguous gradients, at stage 3
  bool tells_reserved = true;    // a reported peak holds blocks and fragments; false: live bytes only
};

// Elements that persist gathered at stage 3, by the threshold.
double persistent_elements(const ModelForm& model, double threshold);

struct PeakMemory {
  double needed_bytes = 0;    // decides whether a trial fits
  double reported_bytes = 0;  // what a trial's result would report
};
PeakMemory peak_memory(const ModelForm& model, const MemoryForm& memory, double ranks, const SurfacePoint& point);

// Activations of a micro batch, without the logits.
double activation_bytes(const MemoryForm& memory, int64_t micro_batch);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_MEMORY_FORM_H_
