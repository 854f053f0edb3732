// Beginnings and ends, tables, lists and shell words.
#include <gtest/gtest.h>

#include "dsat/base/affix.h"
#include "dsat/base/shell.h"
#include "dsat/base/split.h"
#include "dsat/base/table.h"

namespace dsat {
namespace {

TEST(Affix, IsLookedForWhereItBelongs) {
  EXPECT_TRUE(starts_with("torchrun", "torch"));
  EXPECT_FALSE(starts_with("torchrun", "run"));
  EXPECT_FALSE(starts_with("to", "torch"));
  EXPECT_TRUE(ends_with("torchrun", "run"));
  EXPECT_FALSE(ends_with("torchrun", "torch"));
  EXPECT_FALSE(ends_with("un", "run"));
  for (const std::string_view text : {"", "text"}) EXPECT_TRUE(starts_with(text, "") && ends_with(text, "")) << text;
}

TEST(ShellQuote, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_join({"python3", "a b.py", "--x=1", "", "it's", "$HOME"}),
            "python3 'a b.py' --x=1 '' 'it'\\''s' '$HOME'");
  EXPECT_EQ(shell_quote("~root"), "'~root'");
  EXPECT_EQ(shell_quote("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_join({"a=b", "c=d"}), "'a=b' c=d") << "the first word would be an assignment";
}

TEST(Split, KeepsEmptyParts) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split("a,b", ','), (Parts{"a", "b"}));
  EXPECT_EQ(split(",a,", ','), (Parts{"", "a", ""}));
  EXPECT_EQ(split("", ','), Parts{""});
}

TEST(Table, AlignsItsColumns) {
  EXPECT_EQ(format_table({{"name", "size"}, {"a", "12"}, {"long name", "3"}}, {false, true}),
            "name       size\na            12\nlong name     3\n");
}

TEST(Table, CountsCharactersAndTakesShortRows) {
  EXPECT_EQ(format_table({{"\xC3\xA9\xC3\xA9", "x"}, {"ab"}, {"", "y"}}), "\xC3\xA9\xC3\xA9  x\nab\n    y\n");
  EXPECT_EQ(format_table({}), "");
}

TEST(Shell, ACommandWithVariablesRunsInItsFolder) {
  EXPECT_EQ(shell_command("/my code", {"A=b c"}, {"python3", "t.py", "x y"}),
            "cd '/my code' && A='b c' python3 t.py 'x y'");
}

// As a shell reads it, each name and value is text.
TEST(Shell, NoVariableOrWordRunsAnything) {
  const std::vector<std::string> variables{"A=$(touch x)", "B;touch x;=1", "touch x #=`touch x`", "=empty", "C='\"\n"};
  EXPECT_EQ(
      shell_command(".", variables, {"a=b", "$(touch x)"}),
      "cd . && A='$(touch x)' C=''\\''\"\n' env 'B;touch x;=1' 'touch x #=`touch x`' '=empty' 'a=b' '$(touch x)'");
}

TEST(Shell, KnowsTheNamesOfVariables) {
  for (const char* name : {"A", "_", "a1", "LONG_NAME_2"}) EXPECT_TRUE(is_variable_name(name)) << name;
  for (const char* name : {"", "1a", "a b", "a-b", "a;b", "$(x)", "a\nb", "\xC3\xA9"}) {
    EXPECT_FALSE(is_variable_name(name)) << name;
  }
}

}  // namespace
}  // namespace dsat
