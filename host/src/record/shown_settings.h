// Removes possible secrets from a study's settings before they are shown.
// Threading: pure functions. Errors: none; parts in an unknown form are not changed.
#ifndef DSAT_HOST_RECORD_SHOWN_SETTINGS_H_
#define DSAT_HOST_RECORD_SHOWN_SETTINGS_H_

#include "dsat/error.h"

namespace dsat::host {

// Keeps only the names of variables, in `variables` and in the experiment; keys to a registry or a storage become null.
Json shown_settings(Json settings);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_SHOWN_SETTINGS_H_
