// Two Pareto fronts, of the trials that completed and of those that ran out of memory; a point is compared with both.
#include "cost/posterior/memory_bounds.h"

#include <algorithm>

namespace dsat::cost {
namespace {

bool setup_needs_no_more(const Setup& a, const Setup& b) {
  return a.precision == b.precision && a.accumulation_dtype == b.accumulation_dtype && a.optimizer == b.optimizer &&
         a.data_parallel_size == b.data_parallel_size && a.tensor_parallel_size == b.tensor_parallel_size &&
         a.pipeline_stages == b.pipeline_stages && a.activation_checkpointing == b.activation_checkpointing &&
         a.optimizer_device >= b.optimizer_device && a.parameter_device >= b.parameter_device &&
         a.reduce_bucket_elements <= b.reduce_bucket_elements &&
         a.allgather_bucket_elements <= b.allgather_bucket_elements &&
         a.prefetch_bucket_elements <= b.prefetch_bucket_elements &&
         a.max_reuse_distance_elements <= b.max_reuse_distance_elements && a.overlap_comm <= b.overlap_comm;
}

}  // namespace

// Keys that Setup reads are compared by its numbers, so that values outside an axis count as well.
MemoryEffect MemoryBounds::effect_of(const ModelAxis& axis) {
  const MemoryEffect effect = memory_effect(axis.key);
  return effect == MemoryEffect::takes && !axis.numeric ? MemoryEffect::unknown : effect;
}

MemoryBounds::MemoryBounds(const std::vector<ModelAxis>& axes) {
  for (const ModelAxis& axis : axes) {
    const bool outside = axis.key.rfind("zero_optimization.", 0) != 0;
    if (outside && effect_of(axis) == MemoryEffect::unknown) unknown_.push_back(effects_.size());
    effects_.push_back(effect_of(axis));
  }
}

bool MemoryBounds::share_unknown_values(const MemoryArm& a, const MemoryArm& b) const {
  return a.setup.activation_checkpointing == b.setup.activation_checkpointing &&
         std::all_of(unknown_.begin(), unknown_.end(),
                     [&](size_t axis) { return a.coordinates[axis] == b.coordinates[axis]; });
}

void MemoryBounds::clear(Reach reach) {
  reach_ = reach;
  fitted_.clear();
  failed_.clear();
}

bool MemoryBounds::needs_no_more(const MemoryArm& arm, const MemoryArm& than) const {
  if (&arm == &than) return true;
  if (reach_ == Reach::arm || (reach_ == Reach::stage && arm.stage != than.stage)) return false;
  if (arm.stage == than.stage) {
    if (!setup_needs_no_more(arm.setup, than.setup)) return false;
  } else {
    // Stages differ in what they hold besides: all buffers of the higher one must fit in what it divides.
    if (arm.stage < than.stage) return false;
    const double most = arm.state_bytes + arm.buffer_bytes + arm.optional_buffer_bytes;
    if (most > than.state_bytes || arm.setup.optimizer_device < than.setup.optimizer_device) return false;
  }
  for (size_t i = 0; i < effects_.size(); ++i) {
    const double at = arm.coordinates[i], other = than.coordinates[i];
    if (effects_[i] == MemoryEffect::none || effects_[i] == MemoryEffect::read || at == other) continue;
    if (at == kAbsent || other == kAbsent) {
      if (arm.stage == than.stage) return false;  // an axis that one of the stages does not have is no difference
    } else if (effects_[i] == MemoryEffect::unknown || at > other) {
      return false;
    }
  }
  return true;
}

// Does the bound of `b` follow from that of `a`?
bool MemoryBounds::implies(const MemoryPoint& a, const MemoryPoint& b, bool fits) const {
  const MemoryPoint& less = fits ? b : a;
  const MemoryPoint& more = fits ? a : b;
  return less.micro_batch <= more.micro_batch && needs_no_more(*less.arm, *more.arm);
}

void MemoryBounds::add(const MemoryPoint& point, bool fits) {
  std::vector<MemoryPoint>& front = fits ? fitted_ : failed_;
  for (const MemoryPoint& known : front) {
    if (implies(known, point, fits)) return;
  }
  const auto follows = [&](const MemoryPoint& known) { return implies(point, known, fits); };
  front.erase(std::remove_if(front.begin(), front.end(), follows), front.end());
  front.push_back(point);
}

MemoryBounds::Range MemoryBounds::of(const MemoryArm& arm) const {
  Range range;
  for (const MemoryPoint& known : fitted_) {
    if (known.micro_batch > range.fits && needs_no_more(arm, *known.arm)) range.fits = known.micro_batch;
  }
  for (const MemoryPoint& known : failed_) {
    if (known.micro_batch < range.too_big && needs_no_more(*known.arm, arm)) range.too_big = known.micro_batch;
  }
  range.too_big = std::max(range.too_big, range.fits + 1);
  return range;
}

}  // namespace dsat::cost
