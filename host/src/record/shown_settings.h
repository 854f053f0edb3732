// The settings of a study for others to see: without what may be secret.
//
// Threading: pure functions. Errors: none; what is not as a study writes it stays.
#ifndef DSAT_HOST_RECORD_SHOWN_SETTINGS_H_
#define DSAT_HOST_RECORD_SHOWN_SETTINGS_H_

#include "dsat/error.h"

namespace dsat::host {

// Variables, in `variables` and in the experiment, keep their names alone; keys to a registry or a storage become null.
Json shown_settings(Json settings);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_SHOWN_SETTINGS_H_
