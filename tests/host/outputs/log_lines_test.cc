// The table of texts, by the list in log_texts.txt: each text as it is, and as launchers, loggers, terminals and other
// encodings hand it over.
#include "outputs/log_lines.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "dsat/base/utf8.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct LogText {
  std::string what, text;
  std::vector<LogStream> streams;
  bool is_shortage() const { return what != "none"; }
};

std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) ++i;
    out += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return out;
}

std::vector<LogText> log_texts() {
  std::vector<LogText> texts;
  std::ifstream in(DSAT_LOG_TEXTS);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    LogText text{line.substr(0, first), unescaped(line.substr(second + 1)), {}};
    const std::string stream = line.substr(first + 1, second - first - 1);
    if (stream != "stdout") text.streams.push_back(LogStream::standard_error);
    if (stream != "stderr") text.streams.push_back(LogStream::standard_output);
    texts.push_back(std::move(text));
  }
  return texts;
}

bool reports_out_of_memory(const LineReader& reader, const std::string& text, LogStream stream) {
  const std::vector<Meanings> lines = reader.read(printable_lines(text), stream);
  return std::any_of(lines.begin(), lines.end(), [](const Meanings& line) { return line.reports_out_of_memory(); });
}

std::string each_line(const std::string& text, const std::string& before, const std::string& after = "") {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += before + line + after + "\n";
  return out;
}

// Sizes and ids are other ones; short numbers mean something ("error 2"), and so do codes ("EL0004").
std::string with_other_numbers(std::string text) {
  const std::string error_code = "207001";
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find_first_not_of("0123456789.", i), text.size());
    const size_t point = text.find('.', i);
    const bool is_code = (i > 0 && std::isupper(static_cast<unsigned char>(text[i - 1]))) ||
                         text.compare(i, error_code.size(), error_code) == 0;
    const bool is_size = !is_code && (end - i >= 4 || (point > i && point < end && point + 1 < end));
    for (size_t k = i; is_size && k < end; ++k) {
      if (text[k] != '.') text[k] = text[k] == '0' ? '7' : static_cast<char>('1' + ('9' - text[k]));
    }
    i = std::max(end, i + 1);
  }
  return text;
}

std::string as_utf16(const std::string& text) {
  std::string out = "\xFF\xFE";
  for (const char c : text) out += {c, '\0'};
  return out;
}

std::vector<std::string> variants(const std::string& text) {
  return {text,
          each_line(text, "[rank3]: "),
          each_line(text, "[default0]:"),
          each_line(text, "12: "),
          each_line(text, "[1,3]<stderr>: "),
          each_line(text, "2026-02-03 04:05:06,789 "),
          each_line(text, "[2026-02-03T04:05:06.789Z] [ERROR] "),
          each_line(text, "\x1b[31m", "\x1b[0m"),
          each_line(text, "\x1b[1m[rank11]: ", " \x1b[0m\r"),
          with_other_numbers(text),
          "training \xE9tape 3\r 10%|#   | 1/9\r" + text,
          as_utf16(text)};
}

TEST(LogLines, KnowsEveryTextAsItIsAndAsItIsHandedOver) {
  const LineReader reader;
  int shortages = 0, others = 0, on_both = 0;
  for (const LogText& text : log_texts()) {
    ++(text.is_shortage() ? shortages : others);
    if (text.streams.size() == 2) ++on_both;
    for (const std::string& variant : variants(text.text)) {
      for (const LogStream stream : text.streams) {
        EXPECT_EQ(reports_out_of_memory(reader, variant, stream), text.is_shortage()) << variant;
      }
    }
  }
  EXPECT_GE(shortages, 63 + 50 + 85);
  EXPECT_GE(others, 26 + 20 + 40);
  EXPECT_GE(on_both, 120);
}

TEST(LogLines, TellsTheDevicesMemoryFromTheMachines) {
  const LineReader reader;
  const auto what_is = [&](const LogText& text) -> std::string {
    const std::vector<Meanings> lines = reader.read(printable_lines(text.text), text.streams.front());
    const auto has = [&](LineMeaning meaning) {
      return std::any_of(lines.begin(), lines.end(), [&](const Meanings& line) { return line.has(meaning); });
    };
    return has(LineMeaning::device_memory)   ? "device"
           : has(LineMeaning::pinned_memory) ? "pinned"
           : has(LineMeaning::host_memory)   ? "host"
                                             : "none";
  };
  for (const LogText& text : log_texts()) EXPECT_EQ(what_is(text), text.what) << text.text;
}

TEST(LogLines, OnlyTheInnermostFrameSaysThatMemoryIsPinned) {
  const LineReader reader;
  const auto is_pinned = [&](const std::string& frames, const std::string& message = "CUDA error: out of memory") {
    const auto lines = reader.read(printable_lines(frames + "RuntimeError: " + message + "\n"), LogStream::both);
    EXPECT_TRUE(lines.back().reports_out_of_memory()) << frames;
    return lines.back().has(LineMeaning::pinned_memory);
  };
  const std::string pins = "  File \"a.py\", line 3, in pin_memory\n    return x.pin_memory()\n";
  const std::string other = "  File \"b.py\", line 4, in step\n    y = f(x)\n";
  EXPECT_TRUE(is_pinned(other + pins));
  EXPECT_FALSE(is_pinned(pins + other));
  EXPECT_FALSE(is_pinned(pins + "KeyError: 'x'\n"));
  EXPECT_FALSE(is_pinned(pins, "CUDA out of memory. Tried to allocate 2.00 GiB")) << "a device's allocator says so";
  EXPECT_FALSE(is_pinned("  File \"c.py\", line 5, in make\n    torch.empty(8, pin_memory=False)\n"));
}

TEST(LogLines, AQuotedSourceLineMeansNothingUntilTheQuoteEnds) {
  const LineReader reader;
  const std::string frame = "  File \"a.py\", line 3, in step\n";
  EXPECT_FALSE(reports_out_of_memory(reader, frame + "    MemoryError\n    MemoryError\n", LogStream::both));
  EXPECT_TRUE(reports_out_of_memory(reader, frame + "    x = f(\n        y)\nMemoryError\n", LogStream::both));
  EXPECT_TRUE(reports_out_of_memory(reader, frame + "MemoryError\n", LogStream::both)) << "no source: an extension";
}

TEST(LogLines, TakesOffWhatLaunchersAndLoggersWriteFirst) {
  EXPECT_EQ(without_prefixes("[rank0]: [2026-01-02 03:04:05,678] [ERROR] MemoryError"), "MemoryError");
  EXPECT_EQ(without_prefixes("MemoryError"), "MemoryError");
  EXPECT_EQ(without_prefixes(""), "");
}

TEST(LogLines, AUsersOwnPatternIsAShortage) {
  const LineReader reader({"pool (\\w+) is exhausted", "^E42$", "caf. is full"});
  EXPECT_TRUE(reports_out_of_memory(reader, "my allocator: pool small is exhausted!", LogStream::standard_output));
  EXPECT_TRUE(reports_out_of_memory(reader, "x\nE42\ny", LogStream::standard_error));
  EXPECT_FALSE(reports_out_of_memory(reader, "E42 and more", LogStream::standard_error));
  EXPECT_TRUE(reports_out_of_memory(reader, "the caf\u00e9 is full", LogStream::standard_error)) << "one character";
  EXPECT_TRUE(reports_out_of_memory(reader, "CUDA error: out of memory", LogStream::standard_error))
      << "the table, too";
}

TEST(LogLines, RefusesAPatternThatIsNone) {
  const auto why = [](const char* pattern) { return error_of([&] { LineReader({pattern}); }); };
  EXPECT_THAT(why("a(b"), AllOf(StartsWith("--oom-pattern 'a(b'"), HasSubstr("parentheses")));
  EXPECT_THAT(why("[a"), HasSubstr("brackets"));
  EXPECT_THAT(why(""), HasSubstr("it is empty"));
  EXPECT_THAT(why("x*"), HasSubstr("every line"));
  EXPECT_THAT(why("(a)\\1"), HasSubstr("refer back"));
  EXPECT_THAT(why("(?!a)b"), HasSubstr("no '(?!'"));
  EXPECT_THAT(why("a\\qb"), HasSubstr("escape sequence: \\q"));
  EXPECT_THAT(why("(\\pL{500}\\pN){2}"), HasSubstr("too large"));
  EXPECT_THAT(why("((a{1,100}){1,100}){1,100}"), HasSubstr("repetition size: {1,100}"));
  EXPECT_THAT(why("[z-a]"), HasSubstr("z-a"));
}

// Patterns that a search with steps back would not end for, on one line of a megabyte: it ends, which is the test.
TEST(LogLines, NoPatternAndNoLineTakesForEver) {
  const LineReader reader({"(a+)+#$", "(x|xx|[xy])*z", ".*.*.*b"});
  EXPECT_FALSE(reports_out_of_memory(reader, std::string(1 << 20, 'a') + "!", LogStream::both));
  const std::string needle = "CUDA out of memory. Tried to allocate 1 GiB", dots(100000, '.');
  EXPECT_TRUE(reports_out_of_memory(reader, dots + needle + dots, LogStream::both));
  EXPECT_TRUE(reports_out_of_memory(reader, "it failed" + dots + "cudaMalloc failed: out of memory", LogStream::both))
      << "a word of the message stands before it, too";
}

}  // namespace
}  // namespace dsat::host
