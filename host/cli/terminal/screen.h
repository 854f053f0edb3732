// A block of lines at the bottom of a terminal that is redrawn in place, and lines above it that stay.
//
// Purpose: makes the bytes of one frame: the lines that have changed, inside the marks of synchronised output
//   (terminals without it ignore them). The cursor rests below the block and is never hidden, and no mode of the
//   terminal is changed: a program that is killed leaves a clean terminal.
// Threading: one thread at a time. Errors: none.
#ifndef DSAT_CLI_TERMINAL_SCREEN_H_
#define DSAT_CLI_TERMINAL_SCREEN_H_

#include <string>
#include <vector>

#include "terminal/style.h"

namespace dsat::cli {

struct TerminalSize {
  size_t columns = 80, rows = 24;
};

class Screen {
 public:
  explicit Screen(bool colour) : colour_(colour) {}

  // `above` is printed above the block and stays; `block` is cut to the terminal. Returns "" if nothing has changed.
  std::string update(const std::vector<StyledLine>& above, const std::vector<StyledLine>& block, TerminalSize size);
  // Forgets the block, because something else (a shell after Ctrl-Z) has written to the terminal. The next block begins
  // at the cursor.
  void forget() { drawn_.clear(), widths_.clear(); }

 private:
  size_t rows_above_cursor(size_t columns) const;

  const bool colour_;
  std::vector<std::string> drawn_;  // the lines of the block on the terminal
  std::vector<size_t> widths_;      // of these lines, in columns
  TerminalSize size_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SCREEN_H_
