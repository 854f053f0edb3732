// The page as web/ is bundled, with marks where data and plain text go. Threading: a constant. Errors: none.
#ifndef DSAT_CLI_PAGE_BUNDLE_H_
#define DSAT_CLI_PAGE_BUNDLE_H_

#include <string_view>

namespace dsat::cli {

// Empty: built without it.
std::string_view bundle();

}  // namespace dsat::cli

#endif  // DSAT_CLI_PAGE_BUNDLE_H_
