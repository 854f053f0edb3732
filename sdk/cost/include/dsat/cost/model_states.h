// Memory of parameters, gradients and optimizer states, by ZeRO stage.
//
// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", section 3:
// mixed-precision Adam keeps 2P + 2P + 12P bytes; stage 1 divides the 12P by N, stage 2 also the gradients, stage 3
// all. Engines differ in their buffers; DeepSpeed keeps a master copy in fp32 training too, and in bf16 without ZeRO it
// has other gradients (dsat/cost/engine.h).
#ifndef DSAT_COST_MODEL_STATES_H_
#define DSAT_COST_MODEL_STATES_H_

#include <array>

#include "dsat/cost/engine.h"
#include "dsat/cost/setup.h"

namespace dsat::cost {

// Sizes up to which an engine that goes by layers counts parameters, and where reports and profiles have their number.
struct SmallParameters {
  const char* key;
  double elements;
};
inline constexpr std::array<SmallParameters, 5> kSmallParameters{{{"params_up_to_1e3", 1e3},
                                                                  {"params_up_to_1e4", 1e4},
                                                                  {"params_up_to_1e5", 1e5},
                                                                  {"params_up_to_1e6", 1e6},
                                                                  {"params_up_to_1e7", 1e7}}};

struct ModelSize {
  double num_params = 0;            // of the whole model, all ranks
  double trainable_num_params = 0;  // frozen ones cost no gradient and no optimizer state
  double largest_layer_params = 0;  // of an engine that works layer by layer; 0 = it is DeepSpeed
  Engine deepspeed = Engine::deepspeed;
  // Elements of all trained parameters that have at most kSmallParameters[i].elements each; 0 = none, or not known.
  std::array<double, kSmallParameters.size()> small_params{};

  Engine engine() const { return largest_layer_params > 0 ? Engine::by_layer : deepspeed; }
};

// Bytes per device that stay for the whole training.
double model_state_bytes(const ModelSize& size, const Setup& setup);

// Bytes per device of what a step takes beyond the states while activations are at their peak: the bucket through which
// gradients leave (two with overlap_comm, where the engine has two), at stage 3 also the gathered parameters.
double buffer_bytes(const ModelSize& size, const Setup& setup);

// Bytes per device that some engines take at some moments: a flat copy of a bucket while it is reduced, and the bucket
// at stage 1 or the copy of the allgather bucket where the engine's row leaves it open.
double optional_buffer_bytes(const ModelSize& size, const Setup& setup);

// Bytes per device that one forward pass holds before anything was trained, without activations. DeepSpeed has no
// gradients, no Adam states and no bucket then. Two exceptions allocate at once: stage 3 its bucket and gradients, and
// bf16 its flat fp32 gradients.
double forward_bytes(const ModelSize& size, const Setup& setup);

// Transformer activations per sample in 16 bit: layers x s h (34 + 5 a s / h) bytes; without the second term with
// FlashAttention; selective checkpointing also drops it. With full checkpointing 2 s h per layer and one whole layer,
// which backward computes again. Doubled in fp32. Source: Korthikanti et al., "Reducing Activation Recomputation in
// Large Transformer Models", equation 2.
enum class Checkpointing { none, selective, full };
struct TransformerShape {
  double layers = 0, hidden = 0, heads = 0, sequence = 0;
  bool flash_attention = false;
  Checkpointing checkpointing = Checkpointing::none;
};
double transformer_activation_bytes_per_sample(const TransformerShape& shape, Precision precision);

}  // namespace dsat::cost

#endif  // DSAT_COST_MODEL_STATES_H_
