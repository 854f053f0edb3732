// Which texts are numbers.
#include "dsat/base/numbers.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

TEST(ParseInteger, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "one", "--1"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(ParseInteger, HoldsItsBounds) {
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("3", 1, 3), 3);
  EXPECT_EQ(parse_integer("4", 1, 3), std::nullopt);
  EXPECT_EQ(parse_integer("0", 1, 3), std::nullopt);
}

TEST(ParseCount, IsFromZeroToTheLargestInt) {
  EXPECT_EQ(parse_count("0"), 0);
  EXPECT_EQ(parse_count("2147483647"), 2147483647);
  EXPECT_EQ(parse_count("2147483648"), std::nullopt);
  EXPECT_EQ(parse_count("-1"), std::nullopt);
}

TEST(ParseNumber, IsFiniteAndKnowsNoLocale) {
  EXPECT_EQ(parse_number("1.5e3"), 1500);
  EXPECT_EQ(parse_number("-2"), -2);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,5", " 1", "1 ", "1.5.2", "+1"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace dsat
