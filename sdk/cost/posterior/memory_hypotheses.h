// Hypotheses about how memory grows, which the evidence weighs against each other.
//
// Purpose: the formula is right for ZeRO as it is known. Other hypotheses stand ready for where it is not: memory that
//   follows the formula but for sizes that need far more (another algorithm, a workspace); a device of which something
//   else holds a part; an optimizer with smaller states than its name says (8-bit, or made by the script); an engine
//   whose buffers are no larger than the model; and memory that follows no formula, each stage and doubling of the
//   micro batch on its own.
// Units: shares of the device memory. Threading: pure functions. Errors: none.
#ifndef DSAT_COST_POSTERIOR_MEMORY_HYPOTHESES_H_
#define DSAT_COST_POSTERIOR_MEMORY_HYPOTHESES_H_

#include <string>
#include <vector>

#include "cost/posterior/kernel.h"

namespace dsat::cost {

// Means and standard deviations of what a hypothesis leaves open.
struct MemoryHypothesis {
  bool by_formula = true;  // states, buffers and activations; else growth by doublings of the micro batch
  bool has_buffers = true;
  double prior = 1;  // weight before any trial, against the other hypotheses
  // Multiple of the weight for trials that run concurrently, some of which may fail at no cost.
  double concurrent_factor = 1;
  double fixed = 0, fixed_deviation = 0;
  double per_doubling = 0, per_doubling_deviation = 0;  // without the formula
  double stage_deviation = 0;                           // of a stage's offset
  double stage_slope_deviation = 0;                     // of its growth, relative
  double other_cause = 0;                               // share of failures that have another cause
  double optimizer_share = 1, optimizer_deviation = 0;  // of the formula's optimizer states
  double device_deviation = 0.03;                       // of the share of a known device's memory that trials get
  Amplitudes growth, offsets;                           // of the residual: relative to the growth, and absolute
};

MemoryHypothesis formula_hypothesis(const std::vector<ModelAxis>& axes);
// All of them, the formula first.
std::vector<MemoryHypothesis> memory_hypotheses(const std::vector<ModelAxis>& axes);

// Is this key the size of a communication bucket?
bool is_bucket(const std::string& key);
// Does the formula for memory read this key?
bool known_to_formula(const std::string& key);

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_MEMORY_HYPOTHESES_H_
