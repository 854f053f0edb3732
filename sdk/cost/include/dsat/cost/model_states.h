// Memory of parameters, gradients and optimizer states, by ZeRO stage.
//
// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", section 3:
// mixed-precision Adam keeps 2P + 2P + 12P bytes; stage 1 divides the 12P by N, stage 2 also the gradients, stage 3
// everything. Engines differ (dsat/cost/engine.h): DeepSpeed keeps a master copy in fp32 training too, and bf16 without
// ZeRO has other gradients.
#ifndef DSAT_COST_MODEL_STATES_H_
#define DSAT_COST_MODEL_STATES_H_

#include <array>

#include "dsat/cost/engine.h"
#include "dsat/cost/setup.h"

namespace dsat::cost {

// Size classes in which a layer-by-layer engine counts parameters, and their keys in reports and profiles.
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
  double trainable_num_params = 0;  // frozen parameters have no gradient and no optimizer state
  double largest_layer_params = 0;  // of an engine that works layer by layer; 0: the engine is DeepSpeed
  Engine deepspeed = Engine::deepspeed;
  // Elements of all trainable parameters that have at most kSmallParameters[i].elements each; 0: none, or unknown.
  std::array<double, kSmallParameters.size()> small_params{};

  Engine engine() const { return largest_layer_params > 0 ? Engine::by_layer : deepspeed; }
};

// Bytes per device that stay allocated during the whole training.
double model_state_bytes(const ModelSize& size, const Setup& setup);

// Bytes per device of the buffers of a step while activations peak: the bucket that sends gradients (two with
// overlap_comm, if the engine has two), and at stage 3 the gathered parameters.
double buffer_bytes(const ModelSize& size, const Setup& setup);

// Bytes per device of buffers that depend on the engine and the moment: a flat copy of a bucket during its reduction,
// and, unless the engine's row decides them, the bucket at stage 1 and the copy of the allgather bucket.
double optional_buffer_bytes(const ModelSize& size, const Setup& setup);

// Bytes per device during a forward pass before any training, without activations. DeepSpeed has no gradients, Adam
// states or bucket then, with two exceptions: stage 3 allocates its bucket and gradients at once, and bf16 its flat
// fp32 gradients.
double forward_bytes(const ModelSize& size, const Setup& setup);

// Transformer activations per sample in 16 bit: layers x s h (34 + 5 a s / h) bytes. FlashAttention and selective
// checkpointing drop the second term. Full checkpointing keeps 2 s h per layer and one whole layer, which backward
// recomputes. fp32 doubles all. Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
// Models", equation 2.
enum class Checkpointing { none, selective, full };
struct TransformerShape {
  double layers = 0, hidden = 0, heads = 0, sequence = 0;
  bool flash_attention = false;
  Checkpointing checkpointing = Checkpointing::none;
};
double transformer_activation_bytes_per_sample(const TransformerShape& shape, Precision precision);

}  // namespace dsat::cost

#endif  // DSAT_COST_MODEL_STATES_H_
