// The program's own lines are in the test program: see `entry`.
#include "program/dsat_trial.h"
#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

[[maybe_unused]] const bool has_entry = (entry = &dsat_trial) != nullptr;

}  // namespace
}  // namespace dsat::trainer::testing
