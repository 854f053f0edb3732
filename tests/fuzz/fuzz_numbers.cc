// Sizes, durations, numbers, and text of every kind made printable and quoted.
#include "dsat/base/numbers.h"
#include "dsat/base/shell.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "fuzz/fuzz_target.h"
#include "runner/ignore_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view view = fuzz::text_of(data, size);
  const std::string text(view);
  fuzz::may_refuse([&] { parse_size(text); });
  fuzz::may_refuse([&] { parse_duration(text); });
  parse_number(text);
  parse_integer(text);
  parse_count(text);
  const std::string printable = printable_text(view);
  if (printable_text(printable) != printable || first_invalid_utf8(printable) != std::string_view::npos) {
    __builtin_trap();
  }
  shortened(printable, 20);
  shell_join(fuzz::lines_of(view));
  host::IgnoreRules(text).ignores("a/b.log", false);
  return 0;
}
