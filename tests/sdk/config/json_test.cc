// Dotted keys, merges and the identity of a configuration.
#include "dsat/config/json.h"

#include <limits>

#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::HasSubstr;

Json config(const char* text) { return parse(text, "test"); }

TEST(Find, FollowsDottedKeys) {
  const Json json = config(R"({"a": {"b": {"c": 7}}, "n": null})");
  ASSERT_NE(find(json, "a.b.c"), nullptr);
  EXPECT_EQ(*find(json, "a.b.c"), 7);
  EXPECT_EQ(*find(json, "n"), nullptr);
  EXPECT_EQ(find(json, "a.x"), nullptr);
  EXPECT_EQ(find(json, "a.b.c.d"), nullptr);
  EXPECT_EQ(find(json, ""), nullptr);
  EXPECT_EQ(find(Json::array(), "a"), nullptr);
}

TEST(Set, MakesObjectsOnTheWay) {
  Json json = config(R"({"a": {"keep": 1}})");
  set(json, "a.b.c", 2);
  set(json, "x", true);
  EXPECT_EQ(json, config(R"({"a": {"keep": 1, "b": {"c": 2}}, "x": true})"));
  Json none;
  set(none, "a.b", 1);
  EXPECT_EQ(none, config(R"({"a": {"b": 1}})"));
}

TEST(Set, TakesNullForAnAbsentSection) {
  Json json = config(R"({"zero_optimization": {"offload_param": null}})");
  set(json, "zero_optimization.offload_param.device", "cpu");
  EXPECT_EQ(*find(json, "zero_optimization.offload_param.device"), "cpu");
}

TEST(Set, RefusesAScalarOnTheWay) {
  Json json = config(R"({"zero_optimization": {"stage": 1}})");
  EXPECT_EQ(error_of([&] { set(json, "zero_optimization.stage.x", 1); }),
            "cannot set zero_optimization.stage.x: zero_optimization.stage is 1, not a section in braces");
  Json list = config("[1]");
  EXPECT_THAT(error_of([&] { set(list, "a", 1); }), HasSubstr("configuration is [1]"));
}

TEST(Erase, RemovesTheValueAndLeavesObjects) {
  Json json = config(R"({"a": {"b": 1}, "c": 2})");
  erase(json, "a.b");
  erase(json, "a.absent");
  erase(json, "c.d");
  EXPECT_EQ(json, config(R"({"a": {}, "c": 2})"));
}

TEST(Erase, TakesSectionsThatAreEmptyThen) {
  Json json = config(R"({"a": {"b": {"c": 1}}, "d": {"e": 1, "f": {}}})");
  erase_with_sections(json, "a.b.c");
  erase_with_sections(json, "d.e");
  erase_with_sections(json, "absent.key");
  EXPECT_EQ(json, config(R"({"d": {"f": {}}})"));
}

TEST(TextOf, IsOneLineOrIndented) {
  const Json json = config(R"({"b": 1, "a": [true, null]})");
  EXPECT_EQ(text_of(json), R"({"b":1,"a":[true,null]})");
  EXPECT_EQ(text_of(config(R"({"b": 1})"), 2), "{\n  \"b\": 1\n}");
}

TEST(TextOf, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(text_of(Json("a\xff"
                         "b")),
            "\"a\xEF\xBF\xBD"
            "b\"");
  EXPECT_EQ(text_of(Json("\xC3\xA4")), "\"\xC3\xA4\"") << "what is UTF-8 stays";
}

TEST(Leaves, HaveDottedKeysInTheOrderOfTheDocument) {
  const std::vector<Leaf> leaves =
      leaves_of(config(R"({"z": {"b": 1, "a": {"c": [1, {"d": 2}]}}, "e": {}, "n": null})"));
  const std::vector<Leaf> expected{
      {"z.b", 1}, {"z.a.c", config(R"([1, {"d": 2}])")}, {"e", Json::object()}, {"n", nullptr}};
  EXPECT_EQ(leaves, expected);
}

TEST(Leaves, OnlyAnObjectHasThem) {
  for (const Json& other : {Json(), Json(7), Json::array({Json{{"a", 1}}})}) EXPECT_TRUE(leaves_of(other).empty());
}

TEST(Overwrite, MergesObjectsAndReplacesEverythingElseWhole) {
  Json base = config(R"({"a": {"x": 1, "y": 2}, "l": [1, 2, 3], "s": 1, "o": {"k": 1}})");
  overwrite(base, config(R"({"a": {"y": 3, "z": 4}, "l": [9], "s": {"t": 1}, "o": 5, "new": {"n": 1}})"));
  EXPECT_EQ(base, config(R"({"a": {"x": 1, "y": 3, "z": 4}, "l": [9], "s": {"t": 1}, "o": 5, "new": {"n": 1}})"));
}

TEST(Overwrite, KeepsTheOrderOfTheBase) {
  Json base = config(R"({"z": 1, "a": 2})");
  overwrite(base, config(R"({"a": 3, "z": 4})"));
  EXPECT_EQ(base.dump(), R"({"z":4,"a":3})");
}

TEST(Overwrite, NullIsAValueLikeAnyOther) {
  Json base = config(R"({"a": 1, "b": 2})");
  overwrite(base, config(R"({"a": null, "b": {}})"));
  EXPECT_EQ(base, config(R"({"a": null, "b": {}})"));
}

TEST(Identity, IgnoresKeyOrderAtEveryDepth) {
  EXPECT_EQ(identity(config(R"({"a": {"x": 1, "y": [{"p": 1, "q": 2}]}, "b": 2})")),
            identity(config(R"({"b": 2, "a": {"y": [{"q": 2, "p": 1}], "x": 1}})")));
}

TEST(Identity, TakesIntegralFloatsForIntegers) {
  EXPECT_EQ(identity(config(R"({"a": 5e8})")), identity(config(R"({"a": 500000000})")));
  EXPECT_EQ(identity(config(R"({"a": -0.0})")), identity(config(R"({"a": 0})")));
  EXPECT_EQ(identity(Json{{"a", uint64_t{7}}}), identity(Json{{"a", int64_t{7}}}));
  EXPECT_EQ(identity(config(R"({"a": 9223372036854775808})")), identity(config(R"({"a": 9.223372036854775808e18})")));
  EXPECT_NO_THROW(identity(Json{{"a", 1e300}, {"b", std::numeric_limits<double>::infinity()}}));
}

TEST(Identity, LeavesOutAutotuningAtTheTopOnly) {
  EXPECT_EQ(identity(config(R"({"a": 1, "autotuning": {"enabled": true}})")), identity(config(R"({"a": 1})")));
  EXPECT_NE(identity(config(R"({"a": {"autotuning": 1}})")), identity(config(R"({"a": {}})")));
}

TEST(Identity, TellsDifferentConfigurationsApart) {
  const char* const kDifferent[] = {R"({"a": 1})",      R"({"a": 1.5})",    R"({"a": "1"})",  R"({"a": true})",
                                    R"({"a": [1, 2]})", R"({"a": [2, 1]})", R"({"a": null})", R"({})"};
  for (const char* left : kDifferent) {
    for (const char* right : kDifferent) {
      EXPECT_EQ(left == right, identity(config(left)) == identity(config(right))) << left << " " << right;
    }
  }
}

TEST(WholeNumber, IsOneThatItsTypeCanHold) {
  EXPECT_EQ(whole_number<int>(Json(-7)), -7);
  EXPECT_EQ(whole_number<int64_t>(Json::parse("-9223372036854775808")), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(whole_number<uint64_t>(Json::parse("18446744073709551615")), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(whole_number<uint32_t>(Json::parse("4294967295")), std::numeric_limits<uint32_t>::max());
}

TEST(WholeNumber, RefusesAllElse) {
  for (const char* text : {"2147483648", "-2147483649", "1e40", "-1e40", "1.5", "\"7\"", "null", "true", "[7]"}) {
    EXPECT_THROW(whole_number<int>(Json::parse(text)), Error) << text;
  }
  EXPECT_THROW(whole_number<int64_t>(Json::parse("9223372036854775808")), Error);
  EXPECT_THROW(whole_number<uint64_t>(Json(-1)), Error);
  EXPECT_THROW(whole_number<uint32_t>(Json::parse("4294967296")), Error);
}

}  // namespace
}  // namespace dsat::config
