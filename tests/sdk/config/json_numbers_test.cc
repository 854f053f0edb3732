// Numbers at keys.
#include "dsat/config/json_numbers.h"

#include <gmock/gmock.h>

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kRecord = Json::parse(R"({"a": {"b": 2.5, "c": -3}, "none": null, "text": "7", "large": 1e40})");

TEST(NumberAt, IsTheNumberAtADottedKey) {
  EXPECT_EQ(number_at(kRecord, "a.b"), 2.5);
  EXPECT_EQ(number_at(kRecord, "a.c"), -3);
  for (const char* key : {"a", "a.b.c", "none", "text", "absent", ""}) EXPECT_FALSE(number_at(kRecord, key)) << key;
  EXPECT_FALSE(number_at(Json(), "a"));
}

TEST(WholeNumberAt, IsAbsentOrWholeOrAnErrorThatNamesTheKey) {
  EXPECT_EQ(whole_number_at<int>(kRecord, "a.c"), -3);
  EXPECT_FALSE(whole_number_at<int>(kRecord, "none"));
  EXPECT_FALSE(whole_number_at<int>(kRecord, "absent"));
  for (const char* key : {"a", "a.b", "text", "large"}) EXPECT_THROW(whole_number_at<int>(kRecord, key), Error) << key;
  EXPECT_THROW(whole_number_at<uint32_t>(kRecord, "a.c"), Error);
  try {
    whole_number_at<int>(kRecord, "large");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("large"), HasSubstr("1e+40"), HasSubstr("2147483647")));
  }
}

}  // namespace
}  // namespace dsat::config
