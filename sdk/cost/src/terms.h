// The linear form of a setup's peak in the fitted unknowns. Private to the library.
#ifndef DSAT_COST_SRC_TERMS_H_
#define DSAT_COST_SRC_TERMS_H_

#include <fmt/format.h>

#include <Eigen/Dense>
#include <tuple>

#include "dsat/cost/memory.h"

namespace dsat::cost {

inline constexpr int kTerms = MemoryFit::kTerms;
enum Term {
  kFixed = 0,
  kActivation = 1,
  kBufferScale = 2,
  kOptionalBufferScale = 3,
  kStageOffset = 4,  // 4 to 7, one a stage
  kUsableShare = 8
};
using Terms = Eigen::Matrix<double, kTerms, 1>;
using TermsMatrix = Eigen::Matrix<double, kTerms, kTerms, Eigen::RowMajor>;

// peak = known + coefficients . unknowns
struct PeakForm {
  double known_bytes = 0;
  Terms coefficients = Terms::Zero();
};

// Buffers count by their difference to the reference's buffers; see memory.h.
inline PeakForm peak_form(const ModelSize& size, const Setup& setup, const std::optional<Setup>& reference) {
  if (setup.micro_batch < 1) {
    throw Error(fmt::format("micro batch is {}; it must be at least 1", setup.micro_batch));
  }
  PeakForm form;
  const double same_buffers = reference ? buffer_bytes(size, *reference) : 0;
  form.known_bytes = model_state_bytes(size, setup) + same_buffers;
  form.coefficients[kFixed] = 1;
  form.coefficients[kActivation] = static_cast<double>(setup.micro_batch);
  form.coefficients[kBufferScale] = buffer_bytes(size, setup) - same_buffers;
  form.coefficients[kOptionalBufferScale] =
      optional_buffer_bytes(size, setup) - (reference ? optional_buffer_bytes(size, *reference) : 0);
  form.coefficients[kStageOffset + setup.stage] = reference && reference->stage == setup.stage ? 0 : 1;
  return form;
}

// peak - usable share x device memory: the missing bytes (above 0) or the free ones (below 0).
inline PeakForm shortage_form(PeakForm peak, double device_memory_bytes) {
  peak.coefficients[kUsableShare] = -device_memory_bytes;
  return peak;
}

inline Terms unknowns(const MemoryFit& fit) {
  Terms terms;
  terms << fit.fixed_bytes, fit.activation_bytes_per_sample, fit.buffer_scale, fit.optional_buffer_scale,
      fit.stage_offset_bytes[0], fit.stage_offset_bytes[1], fit.stage_offset_bytes[2], fit.stage_offset_bytes[3],
      fit.usable_share;
  return terms;
}

// The first micro batch allocates memory that later ones reuse, so the line begins at 2. A micro batch of 1 counts
// less.
inline double noise_factor(const Setup& setup) { return setup.micro_batch == 1 ? 4 : 1; }

// Everything that decides memory, except the micro batch.
inline auto key_of(const Setup& s) {
  return std::tie(s.stage, s.precision, s.accumulation_dtype, s.optimizer, s.half_master_copy, s.half_states,
                  s.optimizer_device, s.parameter_device,
                  s.offload_ratio, s.sub_group_elements, s.hierarchical_partition, s.data_parallel_size,
                  s.tensor_parallel_size, s.pipeline_stages, s.activation_checkpointing, s.reduce_bucket_elements,
                  s.allgather_bucket_elements, s.prefetch_bucket_elements, s.max_reuse_distance_elements,
                  s.max_live_elements, s.persistence_threshold_elements, s.max_persistent_elements, s.overlap_comm,
                  s.contiguous_gradients, s.unread);
}
struct OrderOfSetups {  // ignores the micro batch
  bool operator()(const Setup& a, const Setup& b) const { return key_of(a) < key_of(b); }
};
inline bool differ_in_micro_batch_only(const Setup& a, const Setup& b) { return key_of(a) == key_of(b); }

}  // namespace dsat::cost

#endif  // DSAT_COST_SRC_TERMS_H_
