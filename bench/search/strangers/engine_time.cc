// Computation and messages are two streams. A module is half a layer; gradients come in their order, last layer first.
#include <algorithm>
#include <cmath>

#include "search/strangers/engine.h"
#include "search/strangers/engine_parts.h"

namespace dsat::bench {
namespace {

constexpr double kReducedAtOnce = 5e8;  // elements, at stage 0

// The clocks of both streams.
struct Streams {
  double compute_s = 0, network_s = 0, beside_s = 0;  // beside: messages while the other stream goes on

  void in_line(double message_s) { network_s = compute_s = std::max(compute_s, network_s) + message_s; }
  void beside(double message_s) {
    network_s = std::max(compute_s, network_s) + message_s;
    beside_s += message_s;
  }
  void wait() { compute_s = std::max(compute_s, network_s); }
};

double message_s(const Training& training, const SurfacePoint& point, double elements) {
  const double bytes = kBytes16 * elements;
  const double copy_s = 2 * bytes / training.device.memory_bytes_s;
  if (point.stage == 3) {
    return copy_s +
           (point.reduce_scatter ? all_gather_s(training.fabric, bytes) : all_reduce_s(training.fabric, bytes));
  }
  if (point.reduce_scatter && training.engine.reduces_to_owners) {
    const double share = training.network.params() / static_cast<double>(training.fabric.ranks);
    return copy_s + reduce_to_owners_s(training.fabric, bytes, std::max(1.0, std::ceil(elements / share)));
  }
  return copy_s + all_reduce_s(training.fabric, bytes);
}

// The bucket of gradients that fills while backward goes on.
class Bucket {
 public:
  Bucket(const Training& training, const SurfacePoint& point) : training_(training), point_(point) {}

  void add(double elements, Streams& streams) {
    if (filled_ > 0 && filled_ + elements > point_.reduce_bucket) send(streams);
    filled_ += elements;
  }
  void send(Streams& streams) {
    if (filled_ <= 0) return;
    streams.compute_s += training_.engine.bucket_s;
    if (filled_ != last_) last_s_ = message_s(training_, point_, last_ = filled_);
    filled_ = 0;
    if (!point_.overlap) return streams.in_line(last_s_);
    streams.wait();  // for the bucket before
    streams.beside(last_s_);
  }

 private:
  const Training& training_;
  const SurfacePoint& point_;
  double filled_ = 0, last_ = 0, last_s_ = 0;  // the last message: most are alike
};

// Parameters that are gathered ahead of their modules, in the order of use.
class Gathering {
 public:
  Gathering(const Training& training, const SurfacePoint& point, const std::vector<double>& modules)
      : training_(training), point_(point), modules_(modules), ready_s_(modules.size(), 0) {}

  // Before module i: waits for it, and asks for more. Modules from `kept` on are there already.
  void fetch(size_t i, size_t kept, Streams& streams) {
    if (next_ <= i) gather(i + 1, kept, streams);
    streams.compute_s = std::max(streams.compute_s, ready_s_[i]);
    if (point_.prefetch_bucket <= 0) return;
    const double most = std::min(point_.live_parameters - alive_, point_.prefetch_bucket);
    size_t end = next_;
    for (double asked = 0; end < modules_.size() && asked < most; ++end) asked += modules_[end];
    gather(end, kept, streams);
  }
  void release(size_t i) { alive_ -= modules_[i]; }

 private:
  void gather(size_t end, size_t kept, Streams& streams) {
    double elements = 0, missing = 0;
    for (size_t i = next_; i < end; ++i) {
      elements += modules_[i];
      if (i >= kept) missing += modules_[i];
    }
    alive_ += elements;
    if (missing > 0) {
      if (missing != last_) last_s_ = all_gather_s(training_.fabric, kBytes16 * (last_ = missing));
      streams.beside(last_s_);
    }
    for (; next_ < end; ++next_) ready_s_[next_] = missing > 0 ? streams.network_s : 0;
  }

  const Training& training_;
  const SurfacePoint& point_;
  const std::vector<double>& modules_;
  std::vector<double> ready_s_;
  size_t next_ = 0;
  double alive_ = 0, last_ = 0, last_s_ = 0;
};

struct Modules {
  std::vector<double> elements, gathered, forward_s;  // gathered: elements that stage 3 has to gather
};

Modules modules_of(const Training& training, const SurfacePoint& point) {
  const Network& network = training.network;
  const LayerTimes times = forward_of(network, training.device, point.micro_batch);
  const Persistent persistent = persistent_of(network, point.persistence_threshold);
  const double third = network.layer_params() / 3;
  Modules modules;
  for (int layer = 0; layer < static_cast<int>(network.layers); ++layer) {
    modules.elements.insert(modules.elements.end(), {third, 2 * third});
    modules.gathered.insert(modules.gathered.end(), {third - persistent.attention, 2 * third - persistent.mlp});
    modules.forward_s.insert(modules.forward_s.end(), {times.attention_s, times.mlp_s});
  }
  modules.elements.push_back(network.head_params());
  modules.gathered.push_back(network.head_params());
  modules.forward_s.push_back(times.head_s);
  return modules;
}

double beside_cost_s(const Training& training, double beside_s, double compute_s) {
  return training.engine.overlap_share * std::min(beside_s, compute_s);
}

double forward_s(const Training& training, const SurfacePoint& point, const Modules& modules) {
  Streams streams;
  if (point.stage < 3) {
    for (const double seconds : modules.forward_s) streams.compute_s += seconds;
    return streams.compute_s;
  }
  Gathering gathering(training, point, modules.gathered);
  for (size_t i = 0; i < modules.elements.size(); ++i) {
    gathering.fetch(i, 0, streams);
    streams.compute_s += modules.forward_s[i] + training.engine.hook_s;
    gathering.release(i);
  }
  return streams.compute_s + beside_cost_s(training, streams.beside_s, streams.compute_s);
}

// Backward of one micro step. `reduces`: gradients are sent.
double backward_s(const Training& training, const SurfacePoint& point, const Modules& modules, bool reduces) {
  const double ratio = training.network.recomputed ? 3 : 2;
  const std::vector<double> order(modules.elements.rbegin(), modules.elements.rend());
  const std::vector<double> gathered(modules.gathered.rbegin(), modules.gathered.rend());
  size_t kept = 0;  // modules that forward has left gathered
  for (double above = 0; point.stage == 3 && kept < order.size(); ++kept) {
    above += order[kept];
    if (2 * above > point.reuse_distance) break;
  }
  Streams streams;
  Bucket bucket(training, point);
  Gathering gathering(training, point, gathered);
  for (size_t i = 0; i < order.size(); ++i) {
    const bool head = i == 0;
    if (point.stage == 3) {
      gathering.fetch(i, kept, streams);
      streams.compute_s += training.engine.hook_s;
    }
    streams.compute_s += (head ? 2 : ratio) * modules.forward_s[order.size() - 1 - i];
    if (point.stage == 3) gathering.release(i);
    if (reduces && point.stage > 0) bucket.add(order[i], streams);
  }
  if (reduces && point.stage > 0) bucket.send(streams);
  streams.wait();
  if (reduces && point.stage == 0) {
    for (double left = training.network.params(); left > 0; left -= kReducedAtOnce) {
      streams.in_line(all_reduce_s(training.fabric, kBytes16 * std::min(left, kReducedAtOnce)));
    }
  }
  return streams.compute_s + beside_cost_s(training, streams.beside_s, streams.compute_s);
}

double step_s(const Training& training, const SurfacePoint& point) {
  constexpr double kBytes = 30, kProcessorBytes = 36;  // read and written for a parameter by Adam in mixed precision
  const double params = training.network.params();
  const double own = point.stage == 0 ? params : params / static_cast<double>(training.fabric.ranks);
  double seconds = training.engine.step_s;
  if (point.offload_optimizer && point.stage > 0) {
    // The gradients go there in backward, on a stream of their own; the new parameters come back in the step.
    seconds += own * (kProcessorBytes / training.host.processor_bytes_s + 2 * kBytes16 / training.host.pcie_bytes_s);
  } else {
    seconds += own * kBytes / training.device.memory_bytes_s;
  }
  if (point.stage == 1 || point.stage == 2) seconds += all_gather_s(training.fabric, kBytes16 * params);
  if (point.stage == 3) seconds += training.engine.step_s * 0.2 * std::ceil(own / std::max(1.0, point.sub_group));
  return seconds;
}

}  // namespace

Truth truth_of(const Training& training, const SurfacePoint& point) {
  const Modules modules = modules_of(training, point);
  const double steps = training.engine.accumulation;
  Truth truth;
  truth.forward_s = forward_s(training, point, modules);
  // Stages 0 and 1 reduce once a step, the others in every micro step.
  const double reducing_s = backward_s(training, point, modules, true);
  truth.backward_s = point.stage >= 2 || steps <= 1
                         ? reducing_s
                         : (reducing_s + (steps - 1) * backward_s(training, point, modules, false)) / steps;
  truth.step_s = step_s(training, point) / steps;
  const Peak peak = peak_of(training, point);
  truth.peak_bytes = peak.needed_bytes;
  truth.reported_bytes = peak.reported_bytes;
  return truth;
}

}  // namespace dsat::bench
