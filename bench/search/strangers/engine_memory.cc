// The peak is the largest of the moments of a step: the end of forward with the loss, the begin of backward with its
// bucket, the end of backward with its gradients, and the update.
#include <algorithm>
#include <cmath>

#include "search/strangers/engine.h"
#include "search/strangers/engine_parts.h"

namespace dsat::bench {
namespace {

constexpr double kBytes32 = 4;

struct States {
  double parameters = 0, optimizer = 0, gradients = 0, updated = 0;  // updated: gradients in 32 bits, in the step
};

States states_of(const Training& training, const SurfacePoint& point) {
  const double params = training.network.params(), ranks = static_cast<double>(training.fabric.ranks);
  const double own = point.stage > 0 ? params / ranks : params;
  const bool offloaded = point.offload_optimizer && point.stage > 0;
  States states;
  states.parameters = kBytes16 * (point.stage == 3 ? own : params);
  states.optimizer = offloaded ? 0 : 3 * kBytes32 * own;
  states.gradients = kBytes16 * (point.stage >= 2 ? own : params);
  states.updated = offloaded ? 0 : kBytes32 * (point.stage == 3 ? std::min(own, point.sub_group) : own);
  return states;
}

// Elements that stage 3 has gathered when forward ends.
double gathered_elements(const Training& training, const SurfacePoint& point) {
  const Network& network = training.network;
  const double params = network.params(), layer = network.layer_params();
  const double kept = std::min(params, point.reuse_distance / 2 + std::max(layer, network.head_params()));
  const double ahead = std::min(point.live_parameters, point.prefetch_bucket);
  const Persistent persistent = persistent_of(network, point.persistence_threshold);
  return std::min(params, kept + ahead + network.layers * (persistent.attention + persistent.mlp));
}

}  // namespace

Persistent persistent_of(const Network& network, double threshold) {
  const double square = network.hidden * network.hidden;
  const auto kept = [&](double size) { return size <= threshold ? size : 0; };
  return {kept(3 * square) + kept(square), 2 * kept(4 * square)};
}

double activation_bytes(const Network& network, double micro_batch) {
  const double tokens = micro_batch * network.sequence * network.hidden;
  const double layer = tokens * (34 + (network.flash ? 0 : 5 * network.sequence / 64));
  return network.recomputed ? network.layers * kBytes16 * tokens + layer : network.layers * layer;
}

Peak peak_of(const Training& training, const SurfacePoint& point) {
  const Network& network = training.network;
  const Allocator& allocator = training.allocator;
  const States states = states_of(training, point);
  const double samples = static_cast<double>(point.micro_batch), params = network.params();
  const double activations = activation_bytes(network, samples);
  const double logits = samples * network.sequence * network.vocabulary * allocator.loss_bytes;
  const bool accumulates = training.engine.accumulation > 1;
  const double gathered = point.stage == 3 ? kBytes16 * gathered_elements(training, point) : 0;
  const double sent = kBytes16 * std::min(params, point.stage > 0 ? point.reduce_bucket : 5e8);
  double buckets = 0, waiting = sent;  // gradients that wait for their message where no bucket is allocated
  if (point.stage > 0 && (point.contiguous || point.offload_optimizer)) {
    buckets = kBytes16 * point.reduce_bucket * (point.overlap && point.stage < 3 ? 2 : 1);
    waiting = 0;
  }
  // Stage 3 has bucket and gradients always; with accumulation the others keep gradients over the next forward.
  const double before = point.stage == 3 ? buckets + states.gradients : accumulates ? states.gradients : 0;
  const double forward = activations + logits + gathered + before;
  const double backward = activations + logits / 2 + gathered + before + (point.stage < 3 ? buckets : 0);
  const double late = states.gradients + buckets + waiting + sent + gathered / 4;
  const double update = states.gradients + states.updated;
  const double moving = std::max({forward, backward, late, update});
  double loose = allocator.fragments;
  if (point.stage == 3 || !point.contiguous) loose += allocator.loose_fragments;
  const double live = allocator.context_bytes + states.parameters + states.optimizer + moving;
  const double reserved = live + loose * moving;
  const double needed = std::ceil(reserved / allocator.segment_bytes) * allocator.segment_bytes;
  return {needed, allocator.reports_reserved ? needed : live};
}

double peak_bytes(const Training& training, const SurfacePoint& point) { return peak_of(training, point).needed_bytes; }

}  // namespace dsat::bench
