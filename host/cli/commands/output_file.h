// The path of -o: refuses the files of the study, and writes a text to the path.
//
// Threading: as dsat/base/files.h. Errors: dsat::Error with one line.
#ifndef DSAT_CLI_COMMANDS_OUTPUT_FILE_H_
#define DSAT_CLI_COMMANDS_OUTPUT_FILE_H_

#include <filesystem>
#include <string_view>

#include "dsat/base/files.h"

namespace dsat::cli {

// Throws if `target` is a file of the study in `dir`. With `takes_page`, the study's page is allowed.
void refuse_files_of_the_study(const std::filesystem::path& dir, const std::filesystem::path& target,
                               bool takes_page = false);

// Replaces a file atomically, also through a link; writes the bytes to a pipe or device. Throws if another user made a
// link on the way. The file is not synced to disk, because the text can be made again.
void write_output(const std::filesystem::path& target, std::string_view text, Access access = Access::by_umask);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_OUTPUT_FILE_H_
