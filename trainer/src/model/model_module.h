// A built-in model as a module for the engine: a chain of layers and its loss.
//
// With segments, forward keeps their inputs only and backward computes each once more (activation checkpointing).
// Ownership: owns its model and leaves. Threading: the compute thread. Errors: what LibTorch throws.
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
#include "zero/model_parts.h"

namespace dsat::trainer {

class ModelModule {
 public:
  // `segments`: what is recomputed as a piece each. None: every activation is kept.
  explicit ModelModule(std::unique_ptr<Model> model, Segments segments = {});

  ModelModule(const ModelModule&) = delete;
  ModelModule& operator=(const ModelModule&) = delete;

  // From now on each forward, which must keep every activation, measures what its layers leave behind. `segments`:
  // those that activation checkpointing would recompute, for which activation_peaks() then predicts the peak as well.
  void measure_activations(Segments segments);
  // The peaks of the last forward, in bytes (formulas: dsat/cost/activations.h); nullopt: none has been measured.
  std::optional<ActivationPeaks> activation_peaks() const;

  // The mean loss of a micro batch, a scalar.
  at::Tensor forward(const Batch& batch) const;

  // For an engine, which gives the leaves memory and the values that the parameters' specifications say.
  const ModelParts& parts() const { return parts_; }
  const Model& model() const { return *model_; }
  const Segments& segments() const { return segments_; }

 private:
  at::Tensor run(const Segment& segment, at::Tensor x) const;
  at::Tensor measured_forward(const Batch& batch) const;
  double largest_parameter_bytes(size_t layer) const;

  std::unique_ptr<Model> model_;
  Segments segments_;
  ModelParts parts_;
  std::vector<Tensors> parameters_;  // trainable leaves of each layer, without memory until an engine gives them some
  Segments planned_segments_;
  mutable std::vector<cost::LayerActivations> layer_activations_;  // of the last forward; empty: not measured
};

// For Engine<ModelModule>.
std::shared_ptr<ModelParts> parts_of(ModelModule& module);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_MODEL_MODULE_H_
