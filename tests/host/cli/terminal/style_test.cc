// Lines with colours, and what a terminal is taken for.
#include "terminal/style.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>

namespace dsat::cli {
namespace {

// A terminal, and an environment in which nothing names terminals.
class StyleOf : public ::testing::Test {
 protected:
  StyleOf() {
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, nullptr), 0);
    for (const char* name : {"CI", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
    setenv("TERM", "xterm", 1);
  }
  ~StyleOf() override {
    close(master_);
    close(slave_);
  }
  Style style() const { return style_of(Output(slave_)); }

  int master_ = -1, slave_ = -1;
};

TEST_F(StyleOf, ATerminalTakesAPictureAndColours) {
  EXPECT_TRUE(style().live);
  EXPECT_TRUE(style().colour);
  EXPECT_FALSE(style().drawing) << "no locale says that it is UTF-8";
  setenv("LANG", "C.UTF-8", 1);
  EXPECT_TRUE(style().drawing);
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(style().drawing) << "LC_ALL goes before LANG";
}

TEST_F(StyleOf, NoColorLeavesThePicture) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(style().live);
  EXPECT_FALSE(style().colour);
}

TEST_F(StyleOf, PlainLinesUnderCiAndOnADumbTerminal) {
  setenv("CI", "true", 1);
  EXPECT_FALSE(style().live);
  setenv("CI", "false", 1);
  EXPECT_TRUE(style().live);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(style().live);
  unsetenv("TERM");
  EXPECT_FALSE(style().live);
}

TEST_F(StyleOf, APipeIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(style_of(Output(ends[1])).live);
  close(ends[0]);
  close(ends[1]);
}

TEST(Render, CutsToTheColumnsAndEndsEveryColour) {
  const StyledLine line{{"abc", Colour::good}, {"defgh", Colour::plain}};
  EXPECT_EQ(render(line, 80, true), "\033[32mabc\033[0mdefgh");
  EXPECT_EQ(render(line, 80, false), "abcdefgh");
  EXPECT_EQ(render(line, 7, false), "abcd...");
  EXPECT_EQ(render({{"abcdefgh", Colour::bad}}, 5, true), "\033[31mab...\033[0m");
  EXPECT_EQ(display_width(line), 8u);
}

TEST(Render, AWideCharacterIsNotCutInHalf) {
  const StyledLine line{{"\xE6\xA8\xA1\xE5\x9E\x8B\xE6\xA8\xA1", Colour::plain}};
  EXPECT_EQ(display_width(line), 6u);
  EXPECT_EQ(render(line, 5, false), "\xE6\xA8\xA1...");
}

}  // namespace
}  // namespace dsat::cli
