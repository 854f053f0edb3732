#include "base/printable_text.h"

#include <gmock/gmock.h>

#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Text = TempDirTest;

TEST_F(Text, ReadsTheTailOfAFile) {
  write_text(dir() / "log", "0123456789");
  EXPECT_EQ(read_tail(dir() / "log", 4), "6789");
  EXPECT_EQ(read_tail(dir() / "log", 100), "0123456789");
}

TEST_F(Text, WhatIsNoFileReadsAsNothing) {
  EXPECT_EQ(read_tail(dir() / "none", 4), "");
  EXPECT_EQ(read_tail(dir(), 4), "");
  EXPECT_EQ(read_file(dir()), std::nullopt);
  EXPECT_EQ(read_file(dir() / "none"), std::nullopt);
}

TEST(PrintableLines, DropsEmptyLinesAndTrailingSpace) {
  EXPECT_THAT(printable_lines("one  \n\n   \ntwo\n"), ElementsAre("one", "two"));
  EXPECT_THAT(printable_lines(""), IsEmpty());
}

TEST(PrintableLines, SplitsProgressBarsAtCarriageReturns) {
  EXPECT_THAT(printable_lines("10%\r20%\r\ndone"), ElementsAre("10%", "20%", "done"));
}

TEST(PrintableLines, DropsColoursAndControlCharacters) {
  EXPECT_THAT(printable_lines("\x1b[1;31mError\x1b[0m:\a x\ty\x7f"), ElementsAre("Error: x y"));
  EXPECT_THAT(printable_lines("cut \x1b[3"), ElementsAre("cut"));
  EXPECT_THAT(printable_lines("cut \x1b"), ElementsAre("cut"));
}

TEST(PrintableLines, ReplacesBytesThatAreNotUtf8) {
  EXPECT_THAT(printable_lines("caf\xC3\xA9"), ElementsAre("caf\xC3\xA9"));
  EXPECT_THAT(printable_lines("\xF0\x9F\x98\x80"), ElementsAre("\xF0\x9F\x98\x80"));
  EXPECT_THAT(printable_lines("a\xFF"
                              "b"),
              ElementsAre("a\xEF\xBF\xBD"
                          "b"));
  EXPECT_THAT(printable_lines("torn \xE2\x82"), ElementsAre("torn \xEF\xBF\xBD\xEF\xBF\xBD"));
  EXPECT_THAT(printable_lines("\xC0\x80"), ElementsAre("\xEF\xBF\xBD\xEF\xBF\xBD"));  // overlong
  EXPECT_THAT(printable_lines("\xED\xA0\x80x").front().back(), 'x');                  // a surrogate
}

TEST(ShellQuote, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_join({"python3", "a b.py", "--x=1", "", "it's", "$HOME"}),
            "python3 'a b.py' --x=1 '' 'it'\\''s' '$HOME'");
}

}  // namespace
}  // namespace dsat::host
