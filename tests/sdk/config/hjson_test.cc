// What people write beyond JSON: read as hjson's Python package reads it for DeepSpeed.
#include <string>

#include "dsat/config/json.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string as_json(const std::string& text) { return text_of(parse_input(text, "c.json")); }

std::string why_not(const std::string& text) {
  return error_of([&] { parse_input(text, "c.json"); });
}

TEST(Hjson, CommasMayBeTooManyOrMissing) {
  EXPECT_EQ(as_json(R"({"a": 1, "b": [1, 2,], "c": {"d": true,},})"), R"({"a":1,"b":[1,2],"c":{"d":true}})");
  EXPECT_EQ(as_json("{\"a\": 1\n \"b\": {\"c\": \"x\"} \"d\": [1\n2]\n}"), R"({"a":1,"b":{"c":"x"},"d":[1,2]})");
  EXPECT_THAT(why_not(R"({"a": 1,, "b": 2})"), StartsWith("c.json:1:9: "));
}

TEST(Hjson, HashesBeginComments) {
  EXPECT_EQ(as_json("# head\n{\"a\": 1 # one\n, /* b */ \"c\": \"#2\"}# end"), R"({"a":1,"c":"#2"})");
}

TEST(Hjson, KeysAndWordsNeedNoQuotes) {
  EXPECT_EQ(as_json("{stage: 2, size : 5e8\nname: AdamW  \n flag: true}"),
            R"({"stage":2,"size":500000000.0,"name":"AdamW","flag":true})");
  EXPECT_EQ(as_json("{'a': 'it is \"b\"', \"c\": \"d's\"}"), R"({"a":"it is \"b\"","c":"d's"})");
  EXPECT_EQ(as_json("stage: 2\nfp16: {enabled: true}"), R"({"stage":2,"fp16":{"enabled":true}})");
  EXPECT_THAT(why_not("{a key: 1}"), StartsWith("c.json:1:2: "));
}

// A word goes on to the end of its line; only numbers, true, false and null end before a comma.
TEST(Hjson, AWordTakesTheRestOfItsLine) {
  EXPECT_EQ(as_json("{a: auto, # both\n b: 1.5, c: null # none\n}"), R"({"a":"auto, # both","b":1.5,"c":null})");
  EXPECT_EQ(as_json("{a: 01\n b: .5\n c: 1.\n d: True\n e: -\n f: /data/x\n}"),
            R"({"a":"01","b":".5","c":"1.","d":"True","e":"-","f":"/data/x"})");
}

TEST(Hjson, StringsHaveEscapesAndLines) {
  EXPECT_EQ(as_json(R"({"a": "\u00e9\ud83d\ude00\n\/", })"), "{\"a\":\"\u00e9\U0001F600\\n/\"}");
  EXPECT_EQ(as_json("{\n  a:\n  '''\n  one\n    two\n  '''\n}"), R"({"a":"one\n  two"})");
  EXPECT_THAT(why_not("{\"a\": \"\n\", }"), HasSubstr("c.json:1:"));
  EXPECT_THAT(why_not("{a: '''one"), StartsWith("c.json:1:"));
}

TEST(Hjson, NumbersKeepTheirSize) {
  EXPECT_EQ(as_json("{a: -9223372036854775808, b: 18446744073709551615, c: 1e-5,}"),
            R"({"a":-9223372036854775808,"b":18446744073709551615,"c":1e-05})");
  EXPECT_THAT(why_not("{a: 1e999,}"), StartsWith("c.json:1:2: "));
}

TEST(Hjson, EqualKeysAndDepthAreRefusedAsInJson) {
  EXPECT_THAT(why_not("{a: {b: 1\n bc: 2\n  bc: 3}}"), StartsWith("c.json:3:3: duplicate key a.bc;"));
  EXPECT_THAT(why_not("{a: " + std::string(200, '[') + std::string(200, ']') + "}"), HasSubstr("nested deeper"));
}

// The advice is about JSON, which everybody knows.
TEST(Hjson, ATextThatIsNeitherSaysWhatJsonLacks) {
  EXPECT_THAT(why_not("{'a': True}"), HasSubstr("single quote"));
  EXPECT_THAT(why_not("{\"a\": True}"), HasSubstr("write true"));
  EXPECT_THAT(why_not("{\"a\": 1"), HasSubstr("'}' is missing"));
  EXPECT_THAT(why_not("hello"), StartsWith("c.json:1:1: 'hello'"));
  EXPECT_THAT(why_not("[1, 2,]"), HasSubstr("comma too many"));
  EXPECT_THAT(why_not("{\"a\": 1 /* open"), HasSubstr("not closed"));
}

}  // namespace
}  // namespace dsat::config
