// Places in a text as people count them, and the checks that come before any parsing.
#ifndef DSAT_CONFIG_SRC_TEXT_POSITION_H_
#define DSAT_CONFIG_SRC_TEXT_POSITION_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace dsat::config {

// "3:14" for the byte at `offset`: lines and columns count from 1, columns in characters and not in bytes.
std::string line_and_column(std::string_view text, size_t offset);

// The offset of the first byte that is not well-formed UTF-8 (overlong forms and surrogates included), or npos.
size_t first_invalid_utf8(std::string_view text);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_TEXT_POSITION_H_
