// UTF-8 text: where it is not well-formed, where people see a place in it, and how wide a terminal shows it.
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

// "3:14" for the byte at `offset`: lines and columns count from 1, columns in characters and not in bytes.
std::string line_and_column(std::string_view text, size_t offset);

// Columns that a terminal needs for `text`: two for a wide character (Chinese, Japanese, Korean, most emoji), none for
// a mark that combines with the one before it, one for any other.
size_t display_width(std::string_view text);

// At most `max_width` columns; a longer text is cut and ends in "...".
std::string shortened(std::string_view text, size_t max_width);

// One line that a terminal or a JSON document takes as it is. Colours and other terminal escapes, control characters
// (C0, C1; line breaks too) and bidirectional overrides are left out, and so are blanks at the end. A tab becomes a
// blank, a byte that is not UTF-8 becomes U+FFFD.
std::string printable_line(std::string_view text);

// The same for text of many lines: \n stays, and so do empty lines and the blanks that indent.
std::string printable_text(std::string_view text);

// The lines of `text` that are not empty, each made printable. They end at \n and at \r, as progress bars print it.
std::vector<std::string> printable_lines(std::string_view text);

}  // namespace dsat

#endif  // DSAT_BASE_UTF8_H_
