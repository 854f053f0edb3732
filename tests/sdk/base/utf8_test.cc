// What dsat/base/utf8.h makes of text that people and programs wrote.
#include "dsat/base/utf8.h"

#include <gmock/gmock.h>

namespace dsat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Utf8, FindsTheFirstByteThatIsNotWellFormed) {
  EXPECT_EQ(first_invalid_utf8(""), std::string_view::npos);
  EXPECT_EQ(first_invalid_utf8("caf\xC3\xA9 \xF0\x9F\x98\x80"), std::string_view::npos);
  EXPECT_EQ(first_invalid_utf8("caf\xE9"), 3u);
  EXPECT_EQ(first_invalid_utf8("a\xC0\xAF"), 1u) << "overlong";
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0u) << "a surrogate";
  EXPECT_EQ(first_invalid_utf8("\xF4\x90\x80\x80"), 0u) << "beyond U+10FFFF";
  EXPECT_EQ(first_invalid_utf8("ab\xE2\x82"), 2u) << "cut off";
}

TEST(Utf8, CountsLinesAndCharacters) {
  EXPECT_EQ(line_and_column("", 0), "1:1");
  EXPECT_EQ(line_and_column("abc", 2), "1:3");
  EXPECT_EQ(line_and_column("a\nbc\nd", 5), "3:1");
  EXPECT_EQ(line_and_column("\xC3\xA9\xC3\xA9x", 4), "1:3") << "columns are characters, not bytes";
  EXPECT_EQ(line_and_column("ab", 99), "1:3") << "behind the end is the end";
}

TEST(Utf8, CutsALongTextBetweenCharacters) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 4), "\xC3\xA9...");
}

TEST(Utf8, AWideCharacterTakesTwoColumns) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\xE6\xA8\xA1\xE5\x9E\x8B"), 4u) << "two Chinese characters";
  EXPECT_EQ(display_width("e\xCC\x81"), 1u) << "an e and an accent that combines with it";
  EXPECT_EQ(display_width("\xF0\x9F\x98\x80"), 2u) << "an emoji";
  EXPECT_EQ(display_width("a\xFF"), 2u) << "a byte that is no UTF-8 is shown as one character";
}

TEST(Utf8, CutsBeforeAWideCharacterThatWouldStandOut) {
  EXPECT_EQ(shortened("\xE6\xA8\xA1\xE5\x9E\x8B\xE6\xA8\xA1", 6), "\xE6\xA8\xA1\xE5\x9E\x8B\xE6\xA8\xA1");
  EXPECT_EQ(shortened("\xE6\xA8\xA1\xE5\x9E\x8B\xE6\xA8\xA1", 5), "\xE6\xA8\xA1...");
  EXPECT_EQ(shortened("\xE6\xA8\xA1\xE5\x9E\x8B\xE6\xA8\xA1", 4), "...");
  EXPECT_EQ(shortened("abcdef", 2), "..");
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
  EXPECT_THAT(printable_lines("\x1b]0;title\aone \x1bPq#\x1b\\two \x1b(B\x1b[mthree \x1bMfour"),
              ElementsAre("one two three four"));
  EXPECT_THAT(printable_lines("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\ end"), ElementsAre("link end"));
  EXPECT_THAT(printable_lines("\x1b]no end of it"), ElementsAre("no end of it"));
  EXPECT_THAT(printable_lines("\x1b]cut by \x1b[1mcolour"), ElementsAre("cut by colour"));
  EXPECT_THAT(printable_lines("\x1b\xC3\xA9"), ElementsAre("\xC3\xA9"));
}

TEST(PrintableLines, DropsC1ControlsAndMarksThatTurnTheText) {
  EXPECT_THAT(printable_lines("a\xC2\x9B"
                              "31mb"),
              ElementsAre("a31mb"));
  EXPECT_THAT(printable_lines("user\xE2\x80\xAEtxt.exe\xE2\x81\xA6"), ElementsAre("usertxt.exe"));
  EXPECT_THAT(printable_lines("one\xE2\x80\xA8two"), ElementsAre("onetwo"));
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

}  // namespace
}  // namespace dsat
