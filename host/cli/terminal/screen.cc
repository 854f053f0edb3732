// Moves up to the block's first line, overwrites the lines that have changed, and ends below the last line. Lines are
// narrower than the terminal, so that none wraps. If the terminal becomes narrower, a line that wraps now counts as the
// rows that it takes, as terminals fold their lines anew.
#include "terminal/screen.h"

#include <fmt/format.h>

#include <algorithm>

namespace dsat::cli {
namespace {

constexpr const char* kBeginFrame = "\033[?2026h";
constexpr const char* kEndFrame = "\033[?2026l";
constexpr const char* kEraseLine = "\033[K";
constexpr const char* kEraseBelow = "\033[J";

}  // namespace

size_t Screen::rows_above_cursor(size_t columns) const {
  size_t rows = 0;
  for (const size_t width : widths_) rows += std::max<size_t>(1, (width + columns - 1) / columns);
  return rows;
}

std::string Screen::update(const std::vector<StyledLine>& above, const std::vector<StyledLine>& block,
                           TerminalSize size) {
  size.columns = std::max<size_t>(2, size.columns);
  const size_t most = std::min(block.size(), size.rows > 1 ? size.rows - 1 : 1);
  std::vector<std::string> lines;
  std::vector<size_t> widths;
  for (size_t i = 0; i < most; ++i) {
    lines.push_back(render(block[i], size.columns - 1, colour_));
    widths.push_back(std::min(display_width(block[i]), size.columns - 1));
  }
  const bool resized = size.columns != size_.columns || size.rows != size_.rows;
  if (above.empty() && lines == drawn_ && !resized) return "";

  std::string bytes = kBeginFrame;
  // The block may begin above the terminal's first row; the cursor stops at that row.
  if (const size_t up = rows_above_cursor(size.columns); up > 0) bytes += fmt::format("\033[{}A", up);
  bytes += "\r";
  const bool anew = !above.empty() || resized;
  if (anew) bytes += kEraseBelow;
  for (const StyledLine& line : above) bytes += render(line, std::string::npos, colour_) + "\r\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool stands = !anew && i < drawn_.size() && drawn_[i] == lines[i];
    if (!stands) bytes += lines[i] + kEraseLine;
    bytes += "\r\n";
  }
  if (!anew) bytes += kEraseBelow;
  drawn_ = std::move(lines);
  widths_ = std::move(widths);
  size_ = size;
  return bytes + kEndFrame;
}

}  // namespace dsat::cli
