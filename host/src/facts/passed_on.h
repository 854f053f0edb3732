// Facts of a study as they are passed on: without secrets, and without characters that hide a text from its reader.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FACTS_PASSED_ON_H_
#define DSAT_HOST_FACTS_PASSED_ON_H_

#include <string>

#include "dsat/config/json.h"
#include "dsat/host/facts.h"

namespace dsat::host {

// Masks what looks like a secret (dsat/base/secrets.h), and drops the characters that turn the direction of a text.
std::string passed_on(const std::string& text);

// The same for every text in a JSON value. A member's name decides about its texts; in a list of arguments, a flag
// decides about the argument behind it.
void make_fit_to_pass_on(Json& json);

void make_fit_to_pass_on(StudyFacts& facts);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_PASSED_ON_H_
