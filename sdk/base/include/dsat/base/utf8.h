// UTF-8 text: whether it is well-formed, line and column of a byte, and its width on a terminal.
//
// Threading: pure functions. Errors: none; any bytes are allowed.
#ifndef DSAT_BASE_UTF8_H_
#define DSAT_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dsat {

// The offset of the first byte that is not well-formed UTF-8 (overlong forms and surrogates included), or npos.
size_t first_invalid_utf8(std::string_view text);

// "3:14" for the byte at `offset`. Lines and columns count from 1; a column is a character.
std::string line_and_column(std::string_view text, size_t offset);

// The columns that a terminal needs for `text`: two for a wide character (Chinese, Japanese, Korean, most emoji), none
// for a combining mark, one for any other.
size_t display_width(std::string_view text);

// The text, cut to `max_width` columns. A cut text ends in "...".
std::string shortened(std::string_view text, size_t max_width);

// The text as one line that is safe on a terminal and in JSON. Left out are terminal escapes, control characters (C0,
// C1, line breaks), bidirectional overrides and blanks at the end. A tab becomes a blank, a byte that is not UTF-8
// becomes U+FFFD.
std::string printable_line(std::string_view text);

// The same for many lines: line breaks, empty lines and indentation stay.
std::string printable_text(std::string_view text);

// The lines of `text` that are not empty, each made printable. A line ends at \n or \r, as progress bars print them.
std::vector<std::string> printable_lines(std::string_view text);

}  // namespace dsat

#endif  // DSAT_BASE_UTF8_H_
