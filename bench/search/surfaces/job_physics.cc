// A pass is compute and messages, in sequence or overlapped bucket by bucket. The step updates and gathers. A bucket is
// sent when it is full, one at a time, so the last one is never hidden.
#include "search/surfaces/job_physics.h"

#include <algorithm>
#include <cmath>

namespace dsat::bench {
namespace {

// Messages of about the same size.
struct Messages {
  double count = 0, each_s = 0;
  double total_s() const { return count * each_s; }
};

Messages messages_of(const LinkForm& link, double elements, double piece, double element_bytes, double volume) {
  if (elements <= 0) return {};
  piece = std::max(1.0, std::min(piece, elements));
  const double whole = std::floor(elements / piece), rest = elements - whole * piece;
  Messages messages;
  messages.count = whole + (rest > 0 ? 1 : 0);
  const double all_s = whole * collective_s(link, element_bytes * piece) + collective_s(link, element_bytes * rest);
  messages.each_s = volume * all_s / messages.count;
  return messages;
}

// The end of overlapped messages. They become ready evenly over `within_s` and are sent one at a time.
double overlapped_s(double compute_s, double within_s, const Messages& messages) {
  if (messages.count < 1) return compute_s;
  const double apart_s = within_s / messages.count;
  const double sent_s = messages.each_s <= apart_s ? within_s + messages.each_s : apart_s + messages.total_s();
  return std::max(compute_s, compute_s - within_s + sent_s);
}

double matrix_or(const JobPhysics& job, double bucket) { return std::max(bucket, job.model.matrix_size); }

Messages gathering(const JobPhysics& job, const SurfacePoint& point, double elements) {
  const double ahead = std::min(point.prefetch_bucket, point.live_parameters);
  const double piece = std::max(ahead, job.model.params / job.model.layers);
  return messages_of(job.link, elements, piece, job.model.element_bytes, 1);
}

double forward_s(const JobPhysics& job, const SurfacePoint& point) {
  const double compute_s = forward_compute_s(job.compute, point.micro_batch);
  if (point.stage < 3) return compute_s;
  const double elements = job.model.params - persistent_elements(job.model, point.persistence_threshold);
  const Messages messages = gathering(job, point, elements);
  const double hooked_s = compute_s + job.module_host_s * job.model.layers;
  if (point.prefetch_bucket <= 0) return hooked_s + messages.total_s();
  return overlapped_s(hooked_s, job.hides * hooked_s, messages);
}

double backward_s(const JobPhysics& job, const SurfacePoint& point) {
  const ModelForm& model = job.model;
  double compute_s = backward_compute_s(job.compute, point.micro_batch);
  if (point.stage == 0) {
    return compute_s + messages_of(job.link, model.trained, 5e8, model.element_bytes, 2).total_s();
  }
  const double copied = model.element_bytes * model.trained * (point.contiguous ? 3 : 2) / job.memory_bytes_s;
  if (point.stage >= 2) compute_s *= 1 + job.stage2_cost;
  Messages messages = messages_of(job.link, model.trained, matrix_or(job, point.reduce_bucket), model.element_bytes,
                                  point.reduce_scatter ? 1 : 2);
  compute_s += copied + job.bucket_host_s * messages.count;
  if (point.stage == 3) {
    const double kept = persistent_elements(model, point.persistence_threshold) + 0.5 * point.reuse_distance;
    const Messages gathered = gathering(job, point, std::max(0.0, model.params - kept));
    compute_s += job.module_host_s * model.layers;
    compute_s = point.prefetch_bucket > 0 ? overlapped_s(compute_s, job.hides * compute_s, gathered)
                                          : compute_s + gathered.total_s();
  }
  if (!point.overlap) return compute_s + messages.total_s();
  compute_s *= 1 + job.overlap_cost * std::min(1.0, messages.total_s() / compute_s);
  return overlapped_s(compute_s, job.hides * compute_s, messages);
}

double step_s(const JobPhysics& job, const SurfacePoint& point) {
  const ModelForm& model = job.model;
  const double own = point.stage >= 1 ? model.trained / static_cast<double>(job.link.ranks) : model.trained;
  double step_s = job.step_host_s;
  if (point.offload_optimizer && point.stage >= 1) {
    step_s += own * (job.host_update_s + 2 * model.element_bytes / job.host_bytes_s);
  } else {
    step_s += job.update_passes * own * (model.state_bytes + 2 * model.element_bytes) / job.memory_bytes_s;
  }
  if (point.stage == 1 || point.stage == 2) step_s += collective_s(job.link, model.element_bytes * model.trained);
  if (point.stage == 3) {
    const double persistent = persistent_elements(model, point.persistence_threshold);
    step_s += collective_s(job.link, model.element_bytes * persistent);
    step_s += job.step_host_s * 0.3 * std::ceil(own / std::max(1.0, point.sub_group));
  }
  return step_s;
}

}  // namespace

Truth job_truth(const JobPhysics& job, const SurfacePoint& point) {
  Truth truth;
  truth.forward_s = forward_s(job, point);
  truth.backward_s = backward_s(job, point);
  truth.step_s = step_s(job, point);
  const double least_s = job.data_s * static_cast<double>(point.micro_batch);
  truth.forward_s += std::max(0.0, least_s - truth.latency_s());
  const PeakMemory peak = peak_memory(job.model, job.memory, static_cast<double>(job.link.ranks), point);
  truth.peak_bytes = peak.needed_bytes;
  truth.reported_bytes = peak.reported_bytes;
  return truth;
}

}  // namespace dsat::bench
