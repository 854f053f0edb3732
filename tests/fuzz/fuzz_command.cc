// The words of a command, a line each, and a shell's text: the launchers in both.
#include "command/hidden_launcher.h"
#include "command/launchers.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  const host::Argv words = fuzz::lines_of(text);
  const host::LauncherUse use = host::find_launcher(words);
  if (use.begin > use.end || use.end > words.size()) __builtin_trap();
  host::command_slots(words, use);
  host::hidden_launcher({"sh", "-c", std::string(text)}, "/nonexistent");
  return 0;
}
