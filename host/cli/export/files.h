// Files and folders of an export. Threading: as dsat/base/files.h. Errors: dsat::Error with one line.
#ifndef DSAT_CLI_EXPORT_FILES_H_
#define DSAT_CLI_EXPORT_FILES_H_

#include <filesystem>
#include <string_view>

namespace dsat::cli {

// Throws if another user made a symbolic link on the way to `path`.
void refuse_links_of_others(const std::filesystem::path& path);

// Makes the folder and its parents; an existing folder stays as it is.
void make_folder(const std::filesystem::path& folder);

// Replaces the file atomically. The file is not synced to disk, because an export can be made again.
void write_export(const std::filesystem::path& file, std::string_view bytes);

// As write_export, but a file that holds the beginning of `bytes` grows in place, so that a program that has it open
// reads on.
void extend_export(const std::filesystem::path& file, std::string_view bytes);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_FILES_H_
