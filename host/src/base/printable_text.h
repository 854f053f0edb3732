// What other programs printed, made fit to be shown, compared and stored.
//
// Threading: pure functions but for reading files.
#ifndef DSAT_HOST_BASE_PRINTABLE_TEXT_H_
#define DSAT_HOST_BASE_PRINTABLE_TEXT_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsat::host {

// The last `max_bytes` of a file; empty when it cannot be read, or is no regular file: a pipe would be waited for.
std::string read_tail(const std::filesystem::path& file, size_t max_bytes);

// The whole of a file; nullopt when it cannot be read, or is no regular file.
std::optional<std::string> read_file(const std::filesystem::path& file);

// Non-empty lines, at \n and at \r (progress bars), without colours, control characters or bytes that are not UTF-8:
// a JSON document or a terminal can take them as they are.
std::vector<std::string> printable_lines(std::string_view text);

// A word, or a command, as a POSIX shell reads it back.
std::string shell_quote(std::string_view word);
std::string shell_join(const std::vector<std::string>& argv);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_PRINTABLE_TEXT_H_
