// A model as the engine sees it: groups of trainable tensors, whatever computes with them.
//
// Ownership: the tensors are handles on the model's own; the engine gives them other memory. `train` and
// `activation_peaks` borrow the model. Threading: a value, used by the compute thread. Errors: dsat::Error that names
// the parameter which the engine cannot train.
#ifndef DSAT_TRAINER_ZERO_MODEL_PARTS_H_
#define DSAT_TRAINER_ZERO_MODEL_PARTS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
  // true: it holds its initial values, and rank 0's are every rank's. false: it has no memory yet, and its initial
  // values follow from `spec` (initial_values.h).
  bool has_values;
};

// A buffer, or a parameter that needs no gradient: whole on every rank, cast to the engine's type.
struct UntrainedTensor {
  std::string name;
  at::Tensor tensor;
};

// What differs in the update of some parameters.
struct UpdateGroup {
  std::optional<double> weight_decay;  // none: the optimizer's
  double lr_scale = 1;
};

struct ModelParts {
  // What stage 3 gathers together; in the order of forward where that is known.
  std::vector<std::vector<ModelParameter>> groups;
  uint64_t next_stream = 0;     // ParameterSpec::stream of the next parameter without values
  std::set<size_t> persistent;  // groups that stage 3 does not partition
  std::vector<UntrainedTensor> untrained;
  std::map<std::string, std::string> aliases;  // a further name of a tensor, and the one that it has here
  // By ParameterSpec::update; the first is that of the parameters in no group of the user's.
  std::vector<UpdateGroup> update_groups = std::vector<UpdateGroup>(1);
  int64_t num_frozen = 0;                         // elements of the parameters among them
  std::function<void(bool)> train = [](bool) {};  // the model's mode: training, or evaluation
  size_t recomputed_segments = 0;                 // whose activations backward computes once more
  // After a forward: the peaks of activation memory that the model has measured, where it does that.
  std::function<std::optional<ActivationPeaks>()> activation_peaks;

  // Adds a parameter that has values: to the last group if it is trained, else to `untrained`.
  void add_parameter(const std::string& name, const at::Tensor& tensor);
  void add_buffer(const std::string& name, const at::Tensor& tensor) { untrained.push_back({name, tensor}); }
};

// Moves the parameters of at most `threshold` elements out of each group into a persistent group of their own, as long
// as all persistent ones together have at most `most` elements. DeepSpeed: stage3_param_persistence_threshold and
// stage3_model_persistence_threshold.
void make_small_ones_persistent(ModelParts& parts, int64_t threshold, int64_t most);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_MODEL_PARTS_H_
