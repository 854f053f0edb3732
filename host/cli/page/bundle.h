// The bundle of web/, with marks where data and plain text are inserted. Threading: a constant. Errors: none.
#ifndef DSAT_CLI_PAGE_BUNDLE_H_
#define DSAT_CLI_PAGE_BUNDLE_H_

#include <string_view>

namespace dsat::cli {

// Empty: dsat-host was built without the bundle.
std::string_view bundle();

}  // namespace dsat::cli

#endif  // DSAT_CLI_PAGE_BUNDLE_H_
