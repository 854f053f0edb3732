// Options that a plugin declares, and the values that it gets.
#include "dsat/option.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

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
  EXPECT_ANY_THROW(options.get<int>("s"));
}

}  // namespace
}  // namespace dsat
