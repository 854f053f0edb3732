// Reads the usual environment variables: TERM, CI, NO_COLOR and the locale's. Colours are the sixteen that each
// terminal defines itself, so they suit light and dark backgrounds.
#include "terminal/style.h"

#include <cstdlib>
#include <limits>

#include "dsat/base/utf8.h"

namespace dsat::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_set(const char* name) { return !variable(name).empty() && variable(name) != "false" && variable(name) != "0"; }

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (value.empty()) continue;
    for (const char* utf8 : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (value.find(utf8) != std::string_view::npos) return true;
    }
    return false;
  }
  return false;
}

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::dim:
      return "\033[2m";
    case Colour::bold:
      return "\033[1m";
    case Colour::good:
      return "\033[32m";
    case Colour::caution:
      return "\033[33m";
    case Colour::bad:
      return "\033[31m";
    case Colour::plain:
      break;
  }
  return "";
}

}  // namespace

Style style_of(const Output& output) {
  Style style;
  const std::string_view term = variable("TERM");
  style.live = output.terminal() && !term.empty() && term != "dumb" && !is_set("CI");
  style.colour = style.live && variable("NO_COLOR").empty();
  style.drawing = locale_is_utf8();
  return style;
}

size_t display_width(const StyledLine& line) {
  size_t width = 0;
  for (const Span& span : line) width += dsat::display_width(span.text);
  return width;
}

std::string render(const StyledLine& line, size_t max_width, bool colour) {
  std::string bytes;
  size_t left = max_width;
  for (const Span& span : line) {
    const std::string text = shortened(span.text, left);
    const bool cut = text.size() != span.text.size();
    if (!text.empty()) {
      const bool coloured = colour && span.colour != Colour::plain;
      bytes += coloured ? code_of(span.colour) + text + "\033[0m" : text;
    }
    left -= dsat::display_width(text);
    if (cut) break;
  }
  return bytes;
}

std::string plain_text(const StyledLine& line) { return render(line, std::numeric_limits<size_t>::max(), false); }

}  // namespace dsat::cli
