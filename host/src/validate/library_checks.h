// Checks of a library: the file, the libraries it needs, its exports, and its description of itself.
// Threading and errors: as checks.h.
#ifndef DSAT_HOST_VALIDATE_LIBRARY_CHECKS_H_
#define DSAT_HOST_VALIDATE_LIBRARY_CHECKS_H_

#include "validate/checks.h"

namespace dsat::host {

// The strategies that the file offers.
std::vector<PluginInfo> described(const std::filesystem::path& file);

CheckOutcome check_file(const CheckContext& context);
CheckOutcome check_dependencies(const CheckContext& context);
CheckOutcome check_loading(const CheckContext& context);
CheckOutcome check_descriptor(const CheckContext& context);
CheckOutcome check_exports(const CheckContext& context);

// The part of check_descriptor that needs no library.
CheckOutcome check_described(const std::vector<PluginInfo>& all, const std::vector<std::string>& host_options);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_LIBRARY_CHECKS_H_
