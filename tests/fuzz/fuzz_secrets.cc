// Any text, masked: it stays well-formed where it was.
#include "dsat/base/secrets.h"
#include "dsat/base/utf8.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  const std::string masked = mask_secrets(text);
  const bool was_sound = first_invalid_utf8(text) == std::string_view::npos;
  if (was_sound && first_invalid_utf8(masked) != std::string_view::npos) __builtin_trap();
  names_secret(text);
  return 0;
}
