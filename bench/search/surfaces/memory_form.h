// The peak of a device's memory by DeepSpeed's allocations and by the allocator.
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

// The properties of a model's parameters that matter to the engine.
struct ModelForm {
  double params = 1e9, trained = 1e9;
  double layers = 24;
  double small_size = 2048, small_total = 2e5;  // biases and norms: elements of one, and of all
  double matrix_size = 4e6;                     // elements of a trained weight matrix; messages are at least this large
  double frozen_matrix_size = 0;                // elements of an untrained one, if few parameters are trained
  double element_bytes = 2, gradient_bytes = 2;
  double state_bytes = 12;  // master copy and optimizer states of a trained parameter
  bool bf16 = false;
};

// The workspace of an algorithm within [from, below).
struct WorkspaceRange {
  int64_t from = 0, below = 0;
  double bytes = 0;
};

struct MemoryForm {
  double fixed_bytes = 1e9;   // the context and the libraries' buffers
  double sample_bytes = 1e9;  // activations of a sample at micro batch 1
  double exponent = 1;        // activations grow with m^exponent
  double padding = 0;         // growth by padding to the longest sample, as a share a doubling
  double logits_bytes = 0;    // of a sample, alive when backward begins
  double constant_bytes = 0;  // activations independent of the micro batch: one recomputed layer, a mask
  std::vector<WorkspaceRange> workspaces;
  double early_copy = 1;         // share of the reduction's copy that exists with all activations
  double block_bytes = 2 << 20;  // the allocator's unit
  double fragmentation = 0;      // share of activations and gathered parameters
  double variety = 0;            // a further share if sizes vary: without contiguous gradients, at stage 3
  bool tells_reserved = true;    // the reported peak includes blocks and fragments; false: live bytes only
};

// The elements that stage 3 keeps gathered, by the threshold.
double persistent_elements(const ModelForm& model, double threshold);

struct PeakMemory {
  double needed_bytes = 0;    // for the question whether a trial fits
  double reported_bytes = 0;  // the peak in a trial's result
};
PeakMemory peak_memory(const ModelForm& model, const MemoryForm& memory, double ranks, const SurfacePoint& point);

// Activations of a micro batch, without the logits.
double activation_bytes(const MemoryForm& memory, int64_t micro_batch);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_MEMORY_FORM_H_
