// The two files of the tuning protocol, as DeepSpeed's engine writes them, with optional keys of our own after them.
//
// Written atomically: a reader sees the whole file or none. The directory must exist. Units: bytes, microseconds,
// elements; see the fields. Threading: values and pure functions. Errors: dsat::Error, one line that names the file.
#ifndef DSAT_TRAINER_FILES_RESULT_FILES_H_
#define DSAT_TRAINER_FILES_RESULT_FILES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsat/cost/model_states.h"
#include "dsat/error.h"

namespace dsat::trainer {

// The most that activations take at a time in a step, predicted from one forward.
struct ActivationPeaks {
  double kept_bytes = 0;        // when all are kept for backward
  double recomputed_bytes = 0;  // when they are recomputed
};

struct ModelInfo {
  int64_t num_params = 0;            // trained
  int64_t num_frozen = 0;            // parameters that need no gradient
  int64_t largest_layer_params = 0;  // what stage 3 gathers at a time
  // Elements of the trained parameters that have at most cost::kSmallParameters[i].elements each.
  std::array<int64_t, cost::kSmallParameters.size()> small_params{};
  int64_t activation_bytes = 0;  // after minus before one forward, worst rank
  int64_t peak_bytes = 0;        // so far: model states and one forward, worst rank
  std::optional<uint64_t> device_memory_bytes;
  int world_size = 1;
  size_t recomputed_segments = 0;  // in backward; 0: every activation is kept

  void count_small(int64_t parameter_elements);  // one more trained parameter

  // Asked for when it is written, after a forward; none where the model is no chain of layers that keeps all.
  std::function<std::optional<ActivationPeaks>()> activation_peaks;
};

// What the metric file is made of. Times are means, in microseconds.
struct TuningMetrics {
  double forward_us = 0;   // per micro step
  double backward_us = 0;  // per micro step
  double step_us = 0;      // of the optimizer, shared out over the micro steps
  int64_t accumulation = 1;
  int64_t train_batch = 1;
  int64_t measured_steps = 1;
  double wall_latency_us = 0;       // per optimizer step, end to end
  double flops_per_micro_step = 0;  // on one rank
  int64_t peak_bytes = 0;           // of the steps, worst rank
  int64_t load_peak_bytes = 0;      // before the first step, worst rank
  int64_t model_state_bytes = 0;    // held between steps, worst rank
  int64_t host_memory_bytes = 0;    // of offloaded states, worst rank
  int64_t skipped_steps = 0;        // for an overflow, of all steps
  std::string precision = "fp32";
  std::optional<uint64_t> device_memory_bytes;
  int world_size = 1;
  std::vector<double> losses;                     // of each optimizer step: mean over ranks and micro steps
  std::vector<std::optional<double>> grad_norms;  // of the same steps, before clipping
  int engines = 1;                                // that this process trains; the parts of a step are of one of them

  double latency_us() const {  // per optimizer step
    if (engines > 1) return wall_latency_us;
    return (forward_us + backward_us + step_us) * static_cast<double>(accumulation);
  }
};

Json to_json(const ModelInfo& info);
Json to_json(const TuningMetrics& metrics);

void write_atomically(const std::string& path, const Json& json);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_RESULT_FILES_H_
