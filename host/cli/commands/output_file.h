// The place that -o names: what it must not be, and how a text gets there.
//
// Threading: as dsat/base/files.h. Errors: dsat::Error with one line.
#ifndef DSAT_CLI_COMMANDS_OUTPUT_FILE_H_
#define DSAT_CLI_COMMANDS_OUTPUT_FILE_H_

#include <filesystem>
#include <string_view>

namespace dsat::cli {

// Throws if `target` is what the study in `dir` keeps there; its page may be written anew where `takes_page`.
void refuse_files_of_the_study(const std::filesystem::path& dir, const std::filesystem::path& target,
                               bool takes_page = false);

// A file becomes the text whole or not at all, behind a link too; a pipe or a device gets the bytes. Nobody waits for
// the disk: the text can be made again.
void write_output(const std::filesystem::path& target, std::string_view text);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_OUTPUT_FILE_H_
