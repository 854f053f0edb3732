#include "zero_model/memory/memory_hypotheses.h"

#include <string>

namespace dsat::guided {
namespace {

constexpr double kOtherCause = 1e-5;  // of an out-of-memory trial

Amplitudes of_activations(const std::vector<Knob>& knobs) {
  Amplitudes amplitudes;
  for (const Knob& knob : knobs) {
    const bool of_default_space = knob.key.rfind("zero_optimization.", 0) == 0;
    const bool fragments = knob.key == "zero_optimization.contiguous_gradients";
    amplitudes.knobs.push_back(fragments ? 0.03 : of_default_space || known_to_formula(knob.key) ? 0.002 : 0.15);
  }
  amplitudes.curve = 0.015;
  amplitudes.rough = 0.003;
  amplitudes.divisibility = 0.002;
  return amplitudes;
}

Amplitudes of_offsets(const std::vector<Knob>& knobs) {
  Amplitudes amplitudes;
  for (const Knob& knob : knobs) amplitudes.knobs.push_back(known_to_formula(knob.key) ? 0.006 : 0.008);
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

MemoryLaw formula_law(const std::vector<Knob>& knobs) {
  MemoryLaw law;
  law.fixed = 0.03;
  law.fixed_deviation = 0.1;
  law.stage_deviation = 0.02;
  law.stage_slope_deviation = 0.03;
  law.failure_elsewhere = kOtherCause;
  law.growth = of_activations(knobs);
  law.offsets = of_offsets(knobs);
  return law;
}

std::vector<MemoryLaw> all_memory_laws(const std::vector<Knob>& knobs) {
  MemoryLaw holes = formula_law(knobs);
  holes.prior = 0.03;
  holes.failure_elsewhere = 0.1;
  MemoryLaw reserve = formula_law(knobs);
  reserve.prior = 0.01;
  reserve.device_deviation = 0.12;
  MemoryLaw doublings;
  doublings.by_formula = false;
  doublings.prior = 0.03;
  doublings.beside = 10;
  doublings.fixed = 0.35;
  doublings.fixed_deviation = 0.25;
  doublings.per_doubling = 0.1;
  doublings.per_doubling_deviation = 0.06;
  doublings.stage_deviation = 0.12;
  doublings.stage_slope_deviation = 0.25;
  doublings.failure_elsewhere = kOtherCause;
  doublings.growth.knobs.assign(knobs.size(), 0.12);
  doublings.growth.curve = 0.1;
  doublings.offsets.knobs.assign(knobs.size(), 0.02);
  doublings.offsets.curve = 0.03;
  return {formula_law(knobs), holes, reserve, doublings};
}

}  // namespace dsat::guided
