// One pass over the lines; a message that says more replaces the one before.
#include "outputs/shortage.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/base/utf8.h"
#include "outputs/oom_numbers.h"

namespace dsat::host {

namespace {

constexpr size_t kLongestMessage = 300;

// How exactly a message says whose memory ran out.
int exactness(LineMeaning memory) {
  switch (memory) {
    case LineMeaning::device_memory:
      return 3;
    case LineMeaning::pinned_memory:
      return 2;
    case LineMeaning::host_memory:
      return 1;
    default:
      return 0;
  }
}

LineMeaning memory_of(const Meanings& meanings) {
  for (const LineMeaning memory : {LineMeaning::device_memory, LineMeaning::pinned_memory, LineMeaning::host_memory}) {
    if (meanings.has(memory)) return memory;
  }
  return LineMeaning::nothing;
}

// Returns a message and the lines after it, because some messages have three more lines.
std::string with_next_lines(const std::vector<std::string>& lines, size_t at) {
  constexpr size_t kMore = 3;
  std::string text;
  for (size_t i = at; i < std::min(at + 1 + kMore, lines.size()); ++i) text += lines[i] + "\n";
  return text;
}

}  // namespace

void add_shortages(const std::vector<std::string>& lines, const std::vector<Meanings>& meanings,
                   std::optional<int> rank, bool on_processors, Shortage& into) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const LineMeaning memory = memory_of(meanings[i]);
    if (memory == LineMeaning::nothing || asks_for_the_impossible(lines[i])) continue;
    const bool is_first = !into.is_there();
    if (exactness(memory) > exactness(into.memory)) {
      into.memory = memory;
      const std::string text = shortened(lines[i], kLongestMessage);
      into.line = rank ? fmt::format("rank {}: {}", *rank, text) : text;
    }
    OomNumbers numbers = read_oom_numbers(with_next_lines(lines, i));
    into.is_refused_in_plenty = (is_first || into.is_refused_in_plenty) && is_refused_in_plenty(numbers);
    const bool is_processes = memory == LineMeaning::host_memory && on_processors;
    if (is_processes && !numbers.allocated) numbers.allocated = 0;
    if (memory != LineMeaning::device_memory && !is_processes) continue;
    into.peak_above_bytes = std::max(into.peak_above_bytes, peak_above_bytes(numbers));
  }
}

std::string describe(const Shortage& shortage) {
  switch (shortage.memory) {
    case LineMeaning::pinned_memory:
      return fmt::format(
          "host (pinned) memory ran out, which no smaller batch cures (set pin_memory: false, or raise ulimit -l): {}",
          shortage.line);
    case LineMeaning::host_memory:
      return "host memory ran out: " + shortage.line;
    default:
      return shortage.line;
  }
}

}  // namespace dsat::host
