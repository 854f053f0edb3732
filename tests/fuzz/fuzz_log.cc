// What a trial printed: lines made printable, their meanings, shortages, reasons, DeepSpeed's steps.
#include "dsat/base/utf8.h"
#include "fuzz/fuzz_target.h"
#include "outputs/launcher_failure.h"
#include "outputs/log_lines.h"
#include "outputs/oom_numbers.h"
#include "outputs/script_lines.h"
#include "outputs/shortage.h"
#include "outputs/step_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::string_view text = fuzz::text_of(data, size);
  const std::vector<std::string> lines = printable_lines(text);
  for (const std::string& line : lines) {
    if (line.find_first_of("\x1b\n\r\x7f") != std::string::npos) __builtin_trap();
    if (first_invalid_utf8(line) != std::string_view::npos) __builtin_trap();
  }
  static const host::LineReader reader({"my allocator .* exhausted"});
  for (const auto stream : {host::LogStream::standard_error, host::LogStream::both}) {
    const std::vector<host::Meanings> meanings = reader.read(lines, stream);
    host::Shortage shortage;
    host::add_shortages(lines, meanings, std::nullopt, true, shortage);
    host::describe(shortage);
    host::script_lines_of(lines, meanings);
  }
  host::peak_above_bytes(host::read_oom_numbers(std::string(text)));
  host::launcher_failure(lines);
  host::first_rank_end(lines);
  Json metrics{{"forward", 1.0}, {"backward", 2.0}, {"step", 1.0}, {"latency", 4.0}, {"throughput", 1e6}};
  host::use_logged_steps(host::read_step_log(lines, false), {3, 5}, {{"train_batch_size", 4}}, metrics);
  host::read_step_log(lines, true);
  return 0;
}
