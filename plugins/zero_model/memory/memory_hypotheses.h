// What memory may be like: the laws that the memory model's evidence weighs against each other.
//
// Purpose: the formula is right for ZeRO as it is known. Where it is not, other laws are ready: memory that follows
//   the formula but for sizes that need far more (another algorithm, a workspace), and memory that follows no formula,
//   each stage and doubling of the micro batch on its own; and a device of which something else holds a part.
// Threading: pure functions. Units: shares of the device memory.
#ifndef DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_HYPOTHESES_H_
#define DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_HYPOTHESES_H_

#include <vector>

#include "zero_model/gaussian/kernel.h"

namespace dsat::guided {

// Means and standard deviations of what a law leaves open.
struct MemoryLaw {
  bool by_formula = true;  // states, buffers and activations; else growth by doublings of the micro batch
  double prior = 1;        // weight before any trial, against the other laws
  double beside = 1;       // multiple of its weight for trials that run side by side, where some may fail at no cost
  double fixed = 0, fixed_deviation = 0;
  double per_doubling = 0, per_doubling_deviation = 0;  // without the formula
  double stage_deviation = 0;                           // of a stage's offset
  double stage_slope_deviation = 0;                     // of its growth, relative
  double failure_elsewhere = 0;                         // share of failures that have another cause
  double device_deviation = 0.018;                      // of the share of a known device's memory that trials get
  Amplitudes growth, offsets;                           // of the residual: relative to the growth, and absolute
};

MemoryLaw formula_law(const std::vector<Knob>& knobs);
// The formula first.
std::vector<MemoryLaw> all_memory_laws(const std::vector<Knob>& knobs);

// The size of a communication bucket?
bool is_bucket(const std::string& key);
// Does the formula for memory read this key?
bool known_to_formula(const std::string& key);

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_HYPOTHESES_H_
