// A block of lines at the bottom of a terminal that is drawn anew in place, and lines that go above it for good.
//
// Purpose: bytes that turn what the terminal shows into what it is to show: one string a frame, inside the marks of
//   synchronised output (terminals without it ignore them), with the lines that have changed and no other.
//   The cursor rests at the start of the line below the block, is never hidden, and no mode of the terminal is changed:
//   whoever is killed leaves a terminal that needs no cleaning.
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

  // `above` goes over the block and stays; `block` is cut to the terminal. Empty: nothing has changed.
  std::string update(const std::vector<StyledLine>& above, const std::vector<StyledLine>& block, TerminalSize size);
  // The terminal shows something else where the block was (a shell after Ctrl-Z): the next block begins at the cursor.
  void forget() { drawn_.clear(), widths_.clear(); }

 private:
  size_t rows_above_cursor(size_t columns) const;

  const bool colour_;
  std::vector<std::string> drawn_;  // the block's lines as they stand
  std::vector<size_t> widths_;      // and how wide they are
  TerminalSize size_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SCREEN_H_
