// Links what dsat-trial does into the test program, so that a start can be a fork: see `entry` in trial_program.h.
#include "program/dsat_trial.h"
#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

[[maybe_unused]] const bool has_entry = (entry = &dsat_trial) != nullptr;

}  // namespace
}  // namespace dsat::trainer::testing
