// A built-in model as a module for the engine: a chain of layers and its loss.
//
// With segments, forward keeps their inputs only and backward computes each once more.
// Threading: one rank, one thread.
#ifndef DSAT_TRAINER_MODEL_MODEL_MODULE_H_
#define DSAT_TRAINER_MODEL_MODEL_MODULE_H_

#include <memory>
#include <optional>
#include <vector>

#include "dsat/cost/activations.h"
#include "dsat/trainer/engine.h"
#include "files/result_files.h"
#include "layout/recompute_segments.h"
#include "model/model.h"

namespace dsat::trainer {

class Chain {
 public:
  // `segments` none: every activation is kept.
  explicit Chain(std::unique_ptr<Model> model, Segments segments = {});

  // Makes each forward, which keeps every activation, note what its layers leave behind; `segments` is what activation
  // checkpointing would be like.
  void watch_activations(Segments segments);
  std::optional<ActivationPeaks> activation_peaks() const;

  // The mean loss of a micro batch, a scalar.
  at::Tensor forward(const Batch& batch) const;

  const Model& model() const { return *model_; }
  const Segments& segments() const { return segments_; }
  // Trainable leaves per layer, without memory until an engine gives them some.
  const std::vector<Tensors>& parameters() const { return parameters_; }

 private:
  at::Tensor run(const Segment& segment, at::Tensor x) const;
  at::Tensor watched_forward(const Batch& batch) const;
  double largest_parameter_bytes(size_t layer) const;

  std::unique_ptr<Model> model_;
  Segments segments_;
  std::vector<Tensors> parameters_;
  Segments foretold_;
  mutable std::vector<cost::LayerActivations> seen_;  // of the last forward; empty: not watched
};

std::shared_ptr<ModelParts> parts_of(Chain& chain);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_MODEL_MODULE_H_
