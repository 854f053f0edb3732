// The bytes of a frame, shown by a terminal of the test's own that knows the few sequences in them.
#include "terminal/screen.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace dsat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A terminal of unlimited height that understands cursor up, erase to the end of line and below, and text.
class Terminal {
 public:
  void take(const std::string& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == '\033') {
        i = sequence(bytes, i + 2);
      } else if (bytes[i] == '\r') {
        column_ = 0;
      } else if (bytes[i] == '\n') {
        ++row_;
      } else {
        put(bytes[i]);
      }
    }
  }
  std::vector<std::string> lines() const { return lines_; }
  size_t row() const { return row_; }

 private:
  size_t sequence(const std::string& bytes, size_t at) {
    size_t end = at;
    while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
    const size_t count = static_cast<size_t>(std::atoi(bytes.c_str() + at));
    if (bytes[end] == 'A') row_ -= std::min(count, row_);
    if (bytes[end] == 'K') line().resize(std::min(column_, line().size()));
    if (bytes[end] == 'J') {
      line().resize(std::min(column_, line().size()));
      lines_.resize(row_ + 1);
      if (lines_.back().empty()) lines_.pop_back();
    }
    return end;
  }
  std::string& line() {
    if (lines_.size() <= row_) lines_.resize(row_ + 1);
    return lines_[row_];
  }
  void put(char c) {
    if (line().size() <= column_) line().resize(column_ + 1, ' ');
    line()[column_++] = c;
  }

  std::vector<std::string> lines_;
  size_t row_ = 0, column_ = 0;
};

std::vector<StyledLine> block(std::vector<std::string> lines) {
  std::vector<StyledLine> styled;
  for (std::string& line : lines) styled.push_back({{std::move(line)}});
  return styled;
}

constexpr TerminalSize kSize{80, 24};

TEST(Screen, DrawsABlockAndEndsBelowIt) {
  Screen screen(false);
  Terminal terminal;
  terminal.take(screen.update({}, block({"one", "two"}), kSize));
  EXPECT_THAT(terminal.lines(), ElementsAre("one", "two"));
  EXPECT_EQ(terminal.row(), 2u);
}

TEST(Screen, WritesNothingWhereNothingHasChanged) {
  Screen screen(false);
  screen.update({}, block({"one", "two"}), kSize);
  EXPECT_EQ(screen.update({}, block({"one", "two"}), kSize), "");
}

TEST(Screen, WritesTheChangedLinesAlone) {
  Screen screen(false);
  Terminal terminal;
  terminal.take(screen.update({}, block({"one", "two", "three"}), kSize));
  const std::string frame = screen.update({}, block({"one", "2", "three"}), kSize);
  EXPECT_THAT(frame, HasSubstr("2"));
  EXPECT_THAT(frame, Not(HasSubstr("one")));
  EXPECT_THAT(frame, Not(HasSubstr("three")));
  terminal.take(frame);
  EXPECT_THAT(terminal.lines(), ElementsAre("one", "2", "three"));
}

TEST(Screen, AFrameIsOneSynchronisedUpdate) {
  Screen screen(true);
  EXPECT_THAT(screen.update({}, block({"one"}), kSize), ::testing::MatchesRegex("\033\\[\\?2026h.*\033\\[\\?2026l"));
}

TEST(Screen, LinesForGoodPushTheBlockDown) {
  Screen screen(false);
  Terminal terminal;
  terminal.take(screen.update({}, block({"one", "two"}), kSize));
  terminal.take(screen.update(block({"trial 0"}), block({"one", "two"}), kSize));
  terminal.take(screen.update(block({"trial 1"}), block({"one"}), kSize));
  EXPECT_THAT(terminal.lines(), ElementsAre("trial 0", "trial 1", "one"));
}

TEST(Screen, TheLastFrameLeavesNothingOfTheBlock) {
  Screen screen(false);
  Terminal terminal;
  terminal.take(screen.update(block({"trial 0"}), block({"one", "two"}), kSize));
  terminal.take(screen.update({}, {}, kSize));
  EXPECT_THAT(terminal.lines(), ElementsAre("trial 0"));
  EXPECT_EQ(terminal.row(), 1u);
}

TEST(Screen, CutsToTheTerminal) {
  Screen screen(false);
  Terminal terminal;
  terminal.take(screen.update({}, block({"0123456789", "b", "c"}), {8, 3}));
  EXPECT_THAT(terminal.lines(), ElementsAre("0123...", "b"));
}

TEST(Screen, ANarrowerTerminalHasFoldedTheBlock) {
  Screen screen(false);
  screen.update({}, block({std::string(30, 'a'), "b"}), {40, 24});
  // 30 columns take two rows of 20: three rows are above the cursor.
  EXPECT_THAT(screen.update({}, block({"a", "b"}), {20, 24}), HasSubstr("\033[3A\r\033[J"));
}

TEST(Screen, WhatAShellWroteStays) {
  Screen screen(false);
  screen.update({}, block({"one", "two"}), kSize);
  screen.forget();
  EXPECT_THAT(screen.update({}, block({"one", "two"}), kSize), Not(HasSubstr("A\r")));
}

}  // namespace
}  // namespace dsat::cli
