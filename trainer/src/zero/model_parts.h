// A model as the engine sees it: groups of trainable tensors, whatever computes with them.
//
// Threading: a value. The tensors are the model's own: the engine gives them other memory.
#ifndef DSAT_TRAINER_ZERO_MODEL_PARTS_H_
#define DSAT_TRAINER_ZERO_MODEL_PARTS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "files/result_files.h"
#include "layout/parameter.h"

namespace dsat::trainer {

struct ModelParameter {
  ParameterSpec spec;
  at::Tensor tensor;  // a leaf that requires a gradient
  bool
      has_values;  // its own, which rank 0 gives to all; false: it has no memory yet, and spec says what it starts with
};

// A buffer, or a parameter that needs no gradient.
struct UntrainedTensor {
  std::string name;
  at::Tensor tensor;
};

struct ModelParts {
  // What stage 3 gathers together; in the order of forward where that is known.
  std::vector<std::vector<ModelParameter>> groups;
  int64_t first_id = 0;         // parameters of the model before these: it decides what a specification's values are
  std::set<size_t> persistent;  // groups that stage 3 does not partition
  std::vector<UntrainedTensor> others;  // whole on every rank, cast to the engine's type
  std::function<void(bool)> train = [](bool) {};
  size_t activation_checkpoints = 0;  // parts that are recomputed in backward
  // After a forward: what a chain of layers has seen of its activations.
  std::function<std::optional<ActivationPeaks>()> activation_peaks;
};

// Cuts out of each group the parameters of at most `threshold` elements, as a persistent group of its own, until
// `most` elements are.
void make_small_ones_persistent(ModelParts& parts, int64_t threshold, int64_t most);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_MODEL_PARTS_H_
