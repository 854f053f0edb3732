// A study as plain HTML tables, for readers without JavaScript and for a program without the bundle.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_CLI_PAGE_PLAIN_H_
#define DSAT_CLI_PAGE_PLAIN_H_

#include <string>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::cli {

// The result, the best configuration, stages and trials, as a part of a page.
std::string plain_study(const host::StudyFacts& facts);

// A whole page; `live`: the browser reloads it every few seconds.
std::string plain_page(const std::vector<const host::StudyFacts*>& studies, bool live);

}  // namespace dsat::cli

#endif  // DSAT_CLI_PAGE_PLAIN_H_
