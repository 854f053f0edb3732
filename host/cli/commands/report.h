// Writes the page of a study that has ended.
//
// Threading: main thread, after the study. Errors: none; a page that cannot be written is a line on standard error.
#ifndef DSAT_CLI_COMMANDS_REPORT_H_
#define DSAT_CLI_COMMANDS_REPORT_H_

#include <filesystem>

#include "dsat/base/files.h"
#include "dsat/host/facts.h"
#include "terminal/console.h"

namespace dsat::cli {

void write_page(const std::filesystem::path& dir, Console& console);

// Writes the page of a study that may go on, for its owner alone. Throws Error, also if that would leave the journal
// too little space.
void write_page_of(const host::StudyFacts& facts, Durability durability);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_REPORT_H_
