// The abilities of the terminal (lines redrawn in place, colours, line drawing), and lines with colours.
//
// Threading: pure functions; style_of reads the environment. Errors: none.
#ifndef DSAT_CLI_TERMINAL_STYLE_H_
#define DSAT_CLI_TERMINAL_STYLE_H_

#include <string>
#include <vector>

#include "terminal/console.h"

namespace dsat::cli {

struct Style {
  bool live = false;     // lines may be rewritten in place
  bool colour = false;   // never where NO_COLOR is set
  bool drawing = false;  // characters beyond ASCII
};

// Plain lines without a terminal, with TERM unset or "dumb", or with CI set.
Style style_of(const Output& output);

enum class Colour { plain, dim, bold, good, caution, bad };

// A piece of a line in one colour.
struct Span {
  std::string text;  // printable: text of others has gone through one_line()
  Colour colour = Colour::plain;
};
using StyledLine = std::vector<Span>;

size_t display_width(const StyledLine& line);
// The bytes of a line, cut to `max_width` columns. Every colour ends where its span does.
std::string render(const StyledLine& line, size_t max_width, bool colour);
// The whole line, without colours.
std::string plain_text(const StyledLine& line);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_STYLE_H_
