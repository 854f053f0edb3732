// The peak is the largest of three moments: the begin of backward (all activations), its end (all gradients), and the
// step. The allocator adds to it.
#include "search/surfaces/memory_form.h"

#include <algorithm>
#include <cmath>

namespace dsat::bench {
namespace {

constexpr double kStage0Piece = 5e8;  // elements that stage 0 flattens at a time

// The engine's memory on a device.
struct EngineMemory {
  double held = 0;            // always: parameters, master copy and optimizer states
  double gradients = 0;       // at the end of backward
  double held_gradients = 0;  // when backward begins
  double buckets = 0, copy = 0;
  double gathered = 0;  // at stage 3, when backward begins
  double layer = 0;     // gathered at the end of backward
  double step = 0;      // additional in the step
};

double gathered_elements(const ModelForm& model, const SurfacePoint& point) {
  const double persistent = persistent_elements(model, point.persistence_threshold);
  const double kept = 0.5 * point.reuse_distance;  // a layer's reuse distance is twice the elements above it
  const double ahead = std::min(point.prefetch_bucket, point.live_parameters);
  return std::min(model.params, persistent + kept + ahead + model.params / model.layers);
}

EngineMemory engine_memory(const ModelForm& model, double ranks, const SurfacePoint& point) {
  const double trained = model.trained, own = trained / ranks, e = model.element_bytes;
  const bool offload = point.offload_optimizer && point.stage >= 1;
  EngineMemory engine;
  // bf16 has its own optimizer: a flat fp32 gradient besides backward's gradients, and no bucket.
  if (model.bf16 && (point.stage == 0 || (point.stage == 1 && model.gradient_bytes == 4 && !offload))) {
    engine.held = e * model.params + model.state_bytes * own + 4 * trained;
    engine.gradients = engine.held_gradients = e * trained;
    return engine;
  }
  engine.held = e * model.params / (point.stage >= 3 ? ranks : 1);
  if (!offload) engine.held += model.state_bytes * (point.stage >= 1 ? own : trained);
  if (point.stage <= 1) {
    engine.gradients = e * trained;
  } else if (!offload) {
    engine.gradients = model.gradient_bytes * own;
  }
  if (point.stage == 0) {
    engine.copy = e * std::min(trained, kStage0Piece);
    return engine;
  }
  const bool whole = point.contiguous || offload;
  engine.buckets = e * (whole ? point.reduce_bucket : std::min(point.reduce_bucket, trained));
  if (point.stage < 3 && whole && point.overlap) engine.buckets *= 2;
  engine.copy = e * std::min(point.reduce_bucket, trained);
  if (offload) engine.layer += e * model.matrix_size;
  if (!offload) engine.step = 4 * (point.stage == 3 ? std::min(point.sub_group, own) : own);
  if (point.stage == 3) {
    engine.held_gradients = engine.gradients;
    engine.gathered = e * gathered_elements(model, point) * (1 - 1 / ranks);
    const double persistent = persistent_elements(model, point.persistence_threshold);
    engine.layer += e * std::min(model.params, persistent + model.params / model.layers);
  }
  return engine;
}

double workspace_bytes(const MemoryForm& memory, int64_t micro_batch) {
  double bytes = 0;
  for (const WorkspaceRange& range : memory.workspaces) {
    if (micro_batch >= range.from && micro_batch < range.below) bytes = std::max(bytes, range.bytes);
  }
  return bytes;
}

}  // namespace

double persistent_elements(const ModelForm& model, double threshold) {
  if (threshold < model.small_size) return 0;
  if (threshold < model.matrix_size) return model.small_total;
  return threshold < model.frozen_matrix_size ? model.small_total + model.trained : model.params;
}

double activation_bytes(const MemoryForm& memory, int64_t micro_batch) {
  const double samples = static_cast<double>(micro_batch);
  return memory.constant_bytes +
         memory.sample_bytes * std::pow(samples, memory.exponent) * (1 + memory.padding * std::log2(samples));
}

PeakMemory peak_memory(const ModelForm& model, const MemoryForm& memory, double ranks, const SurfacePoint& point) {
  const EngineMemory engine = engine_memory(model, ranks, point);
  const double samples = static_cast<double>(point.micro_batch);
  const double activations = activation_bytes(memory, point.micro_batch);
  const double reducing = point.stage == 0 ? 0 : engine.buckets + memory.early_copy * engine.copy;
  const double begin = engine.held_gradients + reducing + engine.gathered + activations +
                       memory.logits_bytes * samples + workspace_bytes(memory, point.micro_batch);
  const double end =
      engine.gradients + engine.buckets + engine.copy + engine.layer + activations / std::max(1.0, model.layers);
  const double step = engine.gradients + engine.step + (point.stage == 3 ? engine.buckets : 0);
  const double live = memory.fixed_bytes + engine.held + std::max({begin, end, step});

  double fragments = memory.fragmentation;
  if (!point.contiguous && point.stage >= 1) fragments += memory.variety;
  if (point.stage == 3) fragments += 0.5 * memory.variety;
  const double reserved = live + fragments * (activations + engine.gathered);
  PeakMemory peak;
  peak.needed_bytes = std::ceil(reserved / memory.block_bytes) * memory.block_bytes;
  peak.reported_bytes = memory.tells_reserved ? peak.needed_bytes : live;
  return peak;
}

}  // namespace dsat::bench
