// The terms of each phase, with the constants in one array a phase, and the priors of the constants. Derivatives are
// finite differences of the one part that a constant belongs to.
#include "zero_model/speed/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "dsat/config/world.h"
#include "zero_model/speed/waves.h"

namespace dsat::zero_model {
namespace {

// Offsets of the constants of a pass (forward or backward). The last one is there where compute goes in waves.
enum PassConstant { kCompute, kHalf, kLaunch, kHooks, kBandwidth, kLatency, kSharpness, kTail, kWaveOdds };
int pass_size(const Load& load) { return load.wave > 0 ? kWaveOdds + 1 : kWaveOdds; }
// Offsets of the constants of the optimizer step.
enum StepConstant { kFixed, kUpdate, kGatherBandwidth, kGatherLatency, kOffload, kStepSize };

struct ConstantPrior {
  double median, deviation;  // the median is of the constant, the deviation of its logarithm
};

double bucket_count(double elements, double bucket) {
  return bucket > 0 ? std::max(1.0, std::ceil(elements / bucket)) : 1;
}

// (a^p + b^p)^(1/p) for a, b >= 0, p >= 1.
double join(double a, double b, double p) {
  const double most = std::max(a, b), least = std::min(a, b);
  if (least <= 0 || p == 1) return a + b;
  return most * std::pow(1 + std::pow(least / most, p), 1 / p);
}

// The longer of two times, (a^4 + b^4)^(1/4): where they are equal both still show. Measured on a GPU, host and device.
double longer(double a, double b) {
  const double most = std::max(a, b), ratio = std::min(a, b) / most, square = ratio * ratio;
  return most * std::sqrt(std::sqrt(1 + square * square));
}

struct PassTraffic {
  double volume = 0;  // in units of all parameters
  double messages = 0;
  double last_message = 0;  // what has nothing left to hide behind, in the same units
  bool overlapped = false;
};

// Whoever needs a prefetched parameter waits for the whole message that brings it (DeepSpeed's
// runtime/zero/partitioned_param_coordinator.py, fetch_sub_module). Without prefetching, every layer waits for its own.
PassTraffic forward_traffic(const Load& load) {
  if (load.stage < 3) return {};
  return {1, load.prefetch_messages, load.prefetch_share, load.prefetch_share > 0};
}

// An all-reduce moves twice what a reduce-scatter does. Stages 0 and 1 reduce once an optimizer step. Stage 3 gathers
// again.
PassTraffic backward_traffic(const Load& load) {
  const double reduce = load.reduce_scatter && load.stage > 0 ? 1 : 2;
  PassTraffic traffic{reduce, load.reduce_messages, reduce * load.reduce_share, load.overlap};
  if (load.stage < 2) {
    traffic.volume /= load.accumulation;
    traffic.messages /= load.accumulation;
    traffic.last_message /= load.accumulation;
  }
  if (load.stage == 3) {
    traffic.volume += 1;
    traffic.messages += load.prefetch_messages;
    traffic.last_message += load.prefetch_share > 0 ? load.prefetch_share : 1;
  }
  return traffic;
}

double pass_time(const Load& load, const PassTraffic& traffic, const double* of) {
  const double half = of[kHalf];
  const double share = load.wave > 0 ? of[kWaveOdds] / (1 + of[kWaveOdds]) : 0;
  const auto work = [&](double samples) {
    return samples + share * (whole_waves(samples, load.wave) - samples) + half;
  };
  const double device = of[kCompute] * work(load.micro_batch) / work(load.reference);
  const double host = of[kLaunch] * (load.stage == 3 ? 1 + of[kHooks] : 1);
  const double compute = load.compute * longer(device, host);
  double wire = 0, tail = 0;
  if (load.ranks > 1 && traffic.volume > 0) {
    const double ring = (load.ranks - 1) / load.ranks;
    const double all = ring * load.param_bytes / of[kBandwidth];
    wire = traffic.volume * all + traffic.messages * of[kLatency];
    tail = traffic.overlapped ? traffic.last_message * all * of[kTail] : 0;
  }
  if (load.offload_params) wire += load.param_bytes / load.ranks / of[kBandwidth];
  const double sharpness = traffic.overlapped ? 1 + of[kSharpness] : 1;
  return join(compute, wire, sharpness) + tail;
}

double step_time(const Load& load, const double* of) {
  const double owned = load.params / (load.stage > 0 ? load.ranks : 1);
  double time = of[kFixed] + owned * of[kUpdate];
  if (load.offload_optimizer) time += owned * of[kOffload];
  if (load.ranks > 1 && (load.stage == 1 || load.stage == 2)) {
    time += load.param_bytes / of[kGatherBandwidth] + load.gather_messages * of[kGatherLatency];
  }
  return time;
}

double forward_time(const Load& load, const double* of) { return pass_time(load, forward_traffic(load), of); }
double backward_time(const Load& load, const double* of) { return pass_time(load, backward_traffic(load), of); }
double share_of_step(const Load& load, const double* of) { return step_time(load, of) / load.accumulation; }
double no_time(const Load&, const double*) { return 0; }

// A phase's time is a sum of parts, each with constants of its own, which follow one another in one array.
struct Part {
  double (*time)(const Load& load, const double* of) = no_time;
  int constants = 0;
};
using Parts = std::array<Part, 3>;

Parts parts_of(StepPhase phase, const Load& load) {
  const int pass = pass_size(load);
  switch (phase) {
    case StepPhase::forward:
      return {{{forward_time, pass}}};
    case StepPhase::backward:
      return {{{backward_time, pass}}};
    case StepPhase::step:
      return {{{step_time, kStepSize}}};
    case StepPhase::total:
      break;
  }
  return {{{forward_time, pass}, {backward_time, pass}, {share_of_step, kStepSize}}};
}

using PartTimes = std::array<double, std::tuple_size_v<Parts>>;

PartTimes times_of(const Parts& parts, const Load& load, const double* of) {
  PartTimes times{};
  for (size_t p = 0; p < parts.size(); of += parts[p++].constants) times[p] = parts[p].time(load, of);
  return times;
}

double log_sum(const PartTimes& times) { return std::log(std::accumulate(times.begin(), times.end(), 0.0)); }

void append(StepTimePrior& prior, std::initializer_list<ConstantPrior> constants) {
  const Eigen::Index at = prior.mean.size();
  prior.mean.conservativeResize(at + static_cast<Eigen::Index>(constants.size()));
  prior.deviation.conservativeResize(prior.mean.size());
  Eigen::Index i = at;
  for (const ConstantPrior& constant : constants) {
    prior.mean[i] = std::log(constant.median);
    prior.deviation[i++] = constant.deviation;
  }
}

// Compute from the first time measured; half of the peak rate at two samples; launches in a fifth of that compute,
// twice as long with the hooks of stage 3; 10 GB/s; 100 us a message; overlap that hides most; half of the last
// message's time exposed; half of the compute in waves, where there are any.
void append_pass(StepTimePrior& prior, double us, bool in_waves) {
  append(prior, {{0.5 * us, 1.2}, {2, 2}, {0.1 * us, 1.5}, {1, 1}, {1e4, 1.5}, {100, 1.3}, {3, 0.8}, {0.5, 1}});
  if (in_waves) append(prior, {{1, 1.2}});
}

// 2 ms fixed; Adam's 32 bytes of traffic a parameter at 500 GB/s; 10 GB/s; 100 us; the host's Adam is 30 x slower.
void append_step(StepTimePrior& prior, double us) {
  append(prior, {{std::min(2000.0, 0.3 * us), 1.5}, {6.4e-5, 1.2}, {1e4, 1.5}, {100, 1.3}, {2e-3, 1.5}});
}

// The time of a sample's share of the model, relative to that of the base configuration's. Where pipelines are
// compared, the slots in which a stage stands idle are counted in: p - 1 of A + p - 1, where A is the accumulation
// (Narayanan et al., arXiv:2104.04473).
double relative_compute(const ModelSpace& space, const Point& point, const Load& load) {
  const double share = load.params / space.parameters();
  if (!space.has_axis(config::kPipelineStagesKey)) return share;
  const auto stages = static_cast<double>(point.arm->setup.pipeline_stages);
  return share * (load.accumulation + stages - 1) / load.accumulation;
}

}  // namespace

Load load_of(const ModelSpace& space, const Point& point) {
  const cost::Setup& setup = point.arm->setup;
  Load load;
  load.micro_batch = static_cast<double>(point.micro_batch);
  load.accumulation = space.accumulation(point);
  load.ranks = point.arm->data_parallel_size;
  load.params = space.parameters(*point.arm);
  load.compute = relative_compute(space, point, load);
  load.param_bytes = load.params * (setup.precision == cost::Precision::fp32 ? 4 : 2);
  load.stage = point.arm->stage;
  load.reduce_messages = load.stage == 0 ? 1 : bucket_count(load.params, setup.reduce_bucket_elements);
  load.gather_messages = bucket_count(load.params, setup.allgather_bucket_elements);
  load.prefetch_messages = bucket_count(load.params, setup.prefetch_bucket_elements);
  load.reduce_share = std::min(1.0, setup.reduce_bucket_elements / load.params);
  load.prefetch_share = std::min(1.0, setup.prefetch_bucket_elements / load.params);
  load.overlap = setup.overlap_comm;
  load.reduce_scatter = point.arm->reduce_scatter;
  load.offload_optimizer = setup.optimizer_device == cost::Device::host;
  load.offload_params = setup.parameter_device == cost::Device::host;
  return load;
}

StepTimePrior prior_of(StepPhase phase, const Load& first, double first_us) {
  StepTimePrior prior;
  const bool in_waves = first.wave > 0;
  const double pass_us = first_us / first.compute;  // what the unknown stands for
  switch (phase) {
    case StepPhase::forward:
    case StepPhase::backward:
      append_pass(prior, pass_us, in_waves);
      break;
    case StepPhase::step:
      append_step(prior, first_us);
      break;
    case StepPhase::total:
      // The backward pass does twice the forward's work (Narayanan et al., arXiv:2104.04473), three times with
      // recomputation.
      append_pass(prior, 0.3 * pass_us, in_waves);
      append_pass(prior, 0.6 * pass_us, in_waves);
      append_step(prior, 0.1 * first_us * first.accumulation);
      break;
  }
  return prior;
}

double log_time(StepPhase phase, const Load& load, const Eigen::VectorXd& constants) {
  return log_sum(times_of(parts_of(phase, load), load, constants.data()));
}

// A constant moves its own part alone. Some move nothing: on one rank, those of communication.
Eigen::RowVectorXd log_time_gradient(StepPhase phase, const Load& load, const Eigen::VectorXd& constants,
                                     double value) {
  constexpr double kStep = 1e-5;
  const double log_step = std::log1p(kStep);
  const Parts parts = parts_of(phase, load);
  PartTimes times = times_of(parts, load, constants.data());
  Eigen::RowVectorXd gradient = Eigen::RowVectorXd::Zero(constants.size());
  Eigen::VectorXd moved = constants;
  Eigen::Index first = 0;
  for (size_t p = 0; p < parts.size(); first += parts[p++].constants) {
    const double time = times[p];
    for (Eigen::Index i = first; i < first + parts[p].constants; ++i) {
      moved[i] *= 1 + kStep;
      times[p] = parts[p].time(load, moved.data() + first);
      if (times[p] != time) gradient[i] = (log_sum(times) - value) / log_step;
      moved[i] = constants[i];
    }
    times[p] = time;
  }
  return gradient;
}

}  // namespace dsat::zero_model
