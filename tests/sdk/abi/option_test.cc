// Options that a plugin declares, and the values that it gets.
#include "dsat/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OptionSpec, SaysWhatTheHostNeeds) {
  EXPECT_EQ(OptionSpec::integer("max-rungs", 5, "rungs").min(1).max(9).json(),
            Json::parse(R"({"name":"max-rungs","type":"int","default":5,"help":"rungs","min":1,"max":9})"));
  EXPECT_EQ(OptionSpec::number("factor", 1.5, "a factor").json()["type"], "number");
  EXPECT_EQ(OptionSpec::boolean("fast", true, "or not").json()["default"], true);
  EXPECT_EQ(OptionSpec::string("name", "x", "a name").json()["type"], "string");
  EXPECT_EQ(OptionSpec::choice("mode", {"a", "b"}, "b", "which").json()["choices"], (Json{"a", "b"}));
}

TEST(Options, GiveTheValues) {
  const Options options(Json{{"n", 3}, {"s", "text"}});
  EXPECT_EQ(options.get<int64_t>("n"), 3);
  EXPECT_EQ(options.get<std::string>("s"), "text");
  EXPECT_THROW(options.get<int>("m"), Error);
}

TEST(Options, AValueOfAnotherTypeIsAnErrorThatNamesTheOption) {
  const Options options(Json{{"mode", "fast"}, {"n", 3}, {"on", true}, {"bad", "\xff"}});
  EXPECT_THAT(error_of([&] { options.get<int>("mode"); }),
              AllOf(HasSubstr("'mode' holds \"fast\","), HasSubstr("-2147483648 to 2147483647")));
  EXPECT_THAT(error_of([&] { options.get<double>("mode"); }), HasSubstr("a number;"));
  EXPECT_THAT(error_of([&] { options.get<bool>("n"); }), AllOf(HasSubstr("'n' holds 3"), HasSubstr("true or false")));
  EXPECT_THAT(error_of([&] { options.get<std::string>("on"); }),
              AllOf(HasSubstr("'on' holds true"), HasSubstr("a text")));
  EXPECT_THAT(error_of([&] { options.get<std::vector<int>>("n"); }), HasSubstr("another type"));
  EXPECT_THAT(error_of([&] { options.get<int>("bad"); }), HasSubstr("option 'bad' holds"));
}

TEST(Options, ANumberThatTheTypeCannotHoldIsAnErrorAndNotAnotherNumber) {
  const Options options(Json{{"half", 2.5},
                             {"whole", 4.0},
                             {"large", 5'000'000'000},
                             {"huge", 1e40},
                             {"edge", 0x1p63},
                             {"minus", -1},
                             {"most", std::numeric_limits<uint64_t>::max()}});
  for (const char* name : {"half", "large", "huge"}) {
    EXPECT_THAT(error_of([&] { options.get<int>(name); }), HasSubstr(std::string("option '") + name + "' holds"));
  }
  for (const char* name : {"half", "huge", "edge", "most"}) {
    EXPECT_NE(error_of([&] { options.get<int64_t>(name); }), "no error") << name;
  }
  EXPECT_NE(error_of([&] { options.get<uint64_t>("minus"); }), "no error");
  EXPECT_EQ(options.get<int>("whole"), 4);
  EXPECT_EQ(options.get<int>("minus"), -1);
  EXPECT_EQ(options.get<int64_t>("large"), 5'000'000'000);
  EXPECT_EQ(options.get<uint64_t>("most"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(options.get<uint64_t>("edge"), uint64_t{1} << 63);
  EXPECT_EQ(options.get<double>("minus"), -1);
}

}  // namespace
}  // namespace dsat
