// Tables, lists and shell words.
#include <gtest/gtest.h>

#include "dsat/base/shell.h"
#include "dsat/base/split.h"
#include "dsat/base/table.h"

namespace dsat {
namespace {

TEST(ShellQuote, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_join({"python3", "a b.py", "--x=1", "", "it's", "$HOME"}),
            "python3 'a b.py' --x=1 '' 'it'\\''s' '$HOME'");
  EXPECT_EQ(shell_quote("~root"), "'~root'");
  EXPECT_EQ(shell_quote("a\nb"), "'a\nb'");
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

}  // namespace
}  // namespace dsat
