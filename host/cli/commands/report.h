// Writes the page of a study that has ended.
//
// Threading: main thread, after the study. Errors: none; a page that cannot be written is a line on standard error.
#ifndef DSAT_CLI_COMMANDS_REPORT_H_
#define DSAT_CLI_COMMANDS_REPORT_H_

#include <filesystem>

#include "terminal/console.h"

namespace dsat::cli {

void write_page(const std::filesystem::path& dir, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_REPORT_H_
