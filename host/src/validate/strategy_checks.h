// Checks of a running strategy, in invented studies.
// Threading and errors: as checks.h.
#ifndef DSAT_HOST_VALIDATE_STRATEGY_CHECKS_H_
#define DSAT_HOST_VALIDATE_STRATEGY_CHECKS_H_

#include "validate/checks.h"

namespace dsat::host {

CheckOutcome check_options(const CheckContext& context);
CheckOutcome check_life(const CheckContext& context);
CheckOutcome check_determinism(const CheckContext& context);
CheckOutcome check_state(const CheckContext& context);
CheckOutcome check_damaged_state(const CheckContext& context);
CheckOutcome check_outcomes(const CheckContext& context);
CheckOutcome check_limits(const CheckContext& context);
CheckOutcome check_latency(const CheckContext& context);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_STRATEGY_CHECKS_H_
