// The constants of each hypothesis about memory: what the formula knows gets narrow residuals, what it does not know
// gets wide ones.
#include "cost/posterior/memory_hypotheses.h"

#include <string>

namespace dsat::cost {
namespace {

constexpr double kOtherCause = 1e-5;  // of an out-of-memory trial

Amplitudes of_activations(const std::vector<ModelAxis>& axes) {
  Amplitudes amplitudes;
  for (const ModelAxis& axis : axes) {
    const bool of_default_space = axis.key.rfind("zero_optimization.", 0) == 0;
    const bool fragments = axis.key == "zero_optimization.contiguous_gradients";
    amplitudes.axes.push_back(fragments ? 0.03 : of_default_space || known_to_formula(axis.key) ? 0.002 : 0.15);
  }
  amplitudes.curve = 0.015;
  amplitudes.rough = 0.003;
  amplitudes.divisibility = 0.002;
  return amplitudes;
}

Amplitudes of_offsets(const std::vector<ModelAxis>& axes) {
  Amplitudes amplitudes;
  for (const ModelAxis& axis : axes) amplitudes.axes.push_back(known_to_formula(axis.key) ? 0.006 : 0.008);
  amplitudes.stage = 0.003;
  amplitudes.curve = 0.01;  // memory that grows in no proportion to the micro batch
  amplitudes.arm = 0.002;
  return amplitudes;
}

}  // namespace

bool is_bucket(const std::string& key) { return key.find("bucket_size") != std::string::npos; }

bool known_to_formula(const std::string& key) {
  return is_bucket(key) || key == "zero_optimization.overlap_comm" || key.find("offload") != std::string::npos;
}

MemoryHypothesis formula_hypothesis(const std::vector<ModelAxis>& axes) {
  MemoryHypothesis hypothesis;
  hypothesis.fixed = 0.03;
  hypothesis.fixed_deviation = 0.1;
  hypothesis.stage_deviation = 0.02;
  hypothesis.stage_slope_deviation = 0.03;
  hypothesis.other_cause = kOtherCause;
  hypothesis.growth = of_activations(axes);
  hypothesis.offsets = of_offsets(axes);
  return hypothesis;
}

std::vector<MemoryHypothesis> memory_hypotheses(const std::vector<ModelAxis>& axes) {
  MemoryHypothesis workspaces = formula_hypothesis(axes);
  workspaces.prior = 0.03;
  workspaces.other_cause = 0.1;
  MemoryHypothesis reserve = formula_hypothesis(axes);
  reserve.prior = 0.01;
  reserve.device_deviation = 0.12;
  MemoryHypothesis lean = formula_hypothesis(axes);
  lean.prior = 0.03;
  lean.optimizer_share = 0.25;
  lean.optimizer_deviation = 0.25;
  MemoryHypothesis bufferless = formula_hypothesis(axes);
  bufferless.prior = 0.03;
  bufferless.has_buffers = false;
  MemoryHypothesis doublings;
  doublings.by_formula = false;
  doublings.prior = 0.03;
  doublings.concurrent_factor = 10;
  doublings.fixed = 0.35;
  doublings.fixed_deviation = 0.25;
  doublings.per_doubling = 0.1;
  doublings.per_doubling_deviation = 0.06;
  doublings.stage_deviation = 0.12;
  doublings.stage_slope_deviation = 0.25;
  doublings.other_cause = kOtherCause;
  doublings.growth.axes.assign(axes.size(), 0.12);
  doublings.growth.curve = 0.1;
  doublings.offsets.axes.assign(axes.size(), 0.02);
  doublings.offsets.curve = 0.03;
  return {formula_hypothesis(axes), workspaces, reserve, lean, bufferless, doublings};
}

}  // namespace dsat::cost
