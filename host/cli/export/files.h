// Files and folders of an export. Threading: as dsat/base/files.h. Errors: dsat::Error with one line.
#ifndef DSAT_CLI_EXPORT_FILES_H_
#define DSAT_CLI_EXPORT_FILES_H_

#include <filesystem>
#include <string_view>

namespace dsat::cli {

// With the folders above it; one that is there is left as it is.
void make_folder(const std::filesystem::path& folder);

// Whole or not at all; an export can be made again, so nobody waits for the disk.
void write_export(const std::filesystem::path& file, std::string_view bytes);

// As write_export, but a file that holds the begin of `bytes` grows in place: who has it open reads on.
void extend_export(const std::filesystem::path& file, std::string_view bytes);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_FILES_H_
