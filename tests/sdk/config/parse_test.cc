// Configuration files as text: what is read, and the place and the reason of what is not.
#include <filesystem>
#include <fstream>
#include <string>

#include "dsat/config/json.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  return error_of([&] { parse(text, "c.json"); });
}

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Parse, KeepsOrderTypesAndNesting) {
  const Json json = parse(R"({"z": 1, "a": [true, null, "x", {"k": -2.5}], "m": 5e8})", "c.json");
  EXPECT_EQ(json.dump(), R"({"z":1,"a":[true,null,"x",{"k":-2.5}],"m":500000000.0})");
}

TEST(Parse, TakesScalarsAndListsAtTheTop) {
  EXPECT_EQ(parse("null", "c.json"), Json(nullptr));
  EXPECT_EQ(parse("[1, [2]]", "c.json"), Json::parse("[1,[2]]"));
  EXPECT_EQ(parse(" \"x\" ", "c.json"), "x");
}

TEST(Parse, AllowsCommentsOfBothKinds) {
  EXPECT_EQ(parse("// head\n{\"a\": /* in */ 1} // tail", "c.json"), Json({{"a", 1}}));
  EXPECT_EQ(parse(R"({"url": "http://x/*y*/"})", "c.json")["url"], "http://x/*y*/");
}

TEST(Parse, ManyKeysCostNoMoreThanTheyAre) {
  std::string text = "{";
  for (int i = 0; i < 9999; ++i) text += "\"key" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  EXPECT_EQ(parse(text + "\"last\": [{\"a\": 1}, {\"a\": 2}]}", "c.json").at("key9998"), 9998);
  EXPECT_THAT(refusal(text + "\"key77\": 1}"), HasSubstr("duplicate key key77"));
  EXPECT_THAT(refusal(text + "\"a\": 1, \"b\": 2}"), HasSubstr("10000 keys"));
}

TEST(Parse, SkipsAUtf8ByteOrderMark) { EXPECT_EQ(parse("\xEF\xBB\xBF{\"a\":1}", "c.json")["a"], 1); }

TEST(Parse, RefusesUtf16) { EXPECT_THAT(refusal(std::string("\xFF\xFE{\0", 4)), HasSubstr("UTF-16")); }

TEST(Parse, NamesDuplicateKeysWithPathAndPlace) {
  EXPECT_THAT(refusal("{\"a\": 1,\n \"a\": 2}"), StartsWith("c.json:2:2: duplicate key a;"));
  EXPECT_THAT(refusal(R"({"zero_optimization": {"stage": 1, "stage": 2}})"),
              HasSubstr("duplicate key zero_optimization.stage;"));
  EXPECT_THAT(refusal(R"({"a": [{}, {"c": 1, "c": 1}]})"), HasSubstr("duplicate key a[1].c;"));
}

TEST(Parse, EqualKeysInDifferentObjectsAreNoDuplicates) {
  EXPECT_NO_THROW(parse(R"({"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}, {"x": 1}]})", "c.json"));
}

TEST(Parse, NamesNonFiniteNumbersAsSuch) {
  EXPECT_THAT(refusal("{\"a\":\n NaN}"), StartsWith("c.json:2:2: NaN"));
  EXPECT_THAT(refusal("{\"a\": [1, Infinity]}"), StartsWith("c.json:1:11: Infinity"));
  EXPECT_THAT(refusal("{\"a\": -Infinity}"), StartsWith("c.json:1:7: -Infinity"));
  EXPECT_THAT(refusal("nan"), StartsWith("c.json:1:1: nan"));
}

TEST(Parse, TellsPythonLiteralsHowToBeJson) {
  EXPECT_THAT(refusal("{\"a\": True}"), HasSubstr("write true"));
  EXPECT_THAT(refusal("{\"a\": False}"), HasSubstr("write false"));
  EXPECT_THAT(refusal("{\"a\": None}"), HasSubstr("write null"));
  EXPECT_THAT(refusal("{'a': 1}"), AllOf(StartsWith("c.json:1:2: "), HasSubstr("single quote")));
}

TEST(Parse, NamesAMissingComma) {
  EXPECT_THAT(refusal("{\n  \"train_batch_size\": 8\n  \"seed\": 1\n}"),
              AllOf(StartsWith("c.json:3:3: "), HasSubstr("train_batch_size"), HasSubstr("',' or '}'"),
                    HasSubstr("comma missing?")));
  EXPECT_THAT(refusal("[1 2]"), AllOf(StartsWith("c.json:1:4: '2'"), HasSubstr("',' or ']'")));
}

TEST(Parse, NamesACommaTooMany) {
  EXPECT_THAT(refusal("{\"a\": 1,}"), AllOf(StartsWith("c.json:1:9: '}'"), HasSubstr("a key")));
  EXPECT_THAT(refusal("[1,]"), StartsWith("c.json:1:4: ']'"));
}

TEST(Parse, NamesOtherSyntaxErrorsWithTheirPlace) {
  EXPECT_THAT(refusal("{\"a\" 1}"), AllOf(StartsWith("c.json:1:6: '1'"), HasSubstr("':'"), HasSubstr("the key a")));
  EXPECT_THAT(refusal("{a: 1}"), AllOf(StartsWith("c.json:1:2: 'a'"), HasSubstr("a key")));
  EXPECT_THAT(refusal("{\"a\": tru}"), AllOf(StartsWith("c.json:1:7: 'tru'"), HasSubstr("a value")));
  EXPECT_THAT(refusal("{\"a\": .5}"), StartsWith("c.json:1:7: '.5'"));
  EXPECT_THAT(refusal("{\"a\": 1.}"), StartsWith("c.json:1:7: '1.'"));
  EXPECT_THAT(refusal("{\"a\": }"), AllOf(StartsWith("c.json:1:7: '}'"), HasSubstr("a value")));
  EXPECT_THAT(refusal("{\"a\": \"x\ny\"}"), AllOf(HasSubstr("c.json:1:9: "), HasSubstr("control character")));
  EXPECT_THAT(refusal("{\"a\": \"\\q\"}"), HasSubstr("after backslash"));
  EXPECT_THAT(refusal("\"abc"), HasSubstr("missing closing quote"));
  EXPECT_THAT(refusal("{} /* open"), HasSubstr("a comment"));
}

TEST(Parse, NamesWhatATornTextLacks) {
  EXPECT_THAT(refusal("{\"a\": {\"b\": 1"), AllOf(HasSubstr("too early"), HasSubstr("'}'")));
  EXPECT_THAT(refusal("{\"a\": [1, 2"), AllOf(HasSubstr("too early"), HasSubstr("']'")));
}

TEST(Parse, RefusesTrailingText) {
  EXPECT_THAT(refusal("{} x"), StartsWith("c.json:1:4: 'x'"));
  EXPECT_THAT(refusal("{\"a\": 1}{}"), StartsWith("c.json:1:9: '{'"));
  EXPECT_THAT(refusal("null null"), StartsWith("c.json:1:6: 'null'"));
}

TEST(Parse, RefusesEmptyTexts) {
  EXPECT_THAT(refusal(""), StartsWith("c.json: is empty"));
  EXPECT_THAT(refusal(" \r\n\t"), StartsWith("c.json: is empty"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF"), StartsWith("c.json: is empty"));
  EXPECT_THAT(refusal("// nothing"), AllOf(StartsWith("c.json: "), HasSubstr("only comments")));
}

TEST(Parse, AcceptsDepth100AndRefusesMore) {
  EXPECT_NO_THROW(parse(nested(100), "c.json"));
  EXPECT_THAT(refusal(nested(101)), AllOf(StartsWith("c.json:1:101: "), HasSubstr("100 levels")));
  EXPECT_THAT(refusal(std::string(1000000, '[')), HasSubstr("nested deeper"));
}

TEST(Parse, RefusesNumbersBeyondADouble) {
  EXPECT_THAT(refusal("{\"a\": 1e999}"), AllOf(StartsWith("c.json:1:7: "), HasSubstr("1e999 is too large")));
  EXPECT_THAT(refusal("[-1e400]"), AllOf(StartsWith("c.json:1:2: "), HasSubstr("-1e400 is too large")));
  EXPECT_EQ(parse("[1e-999]", "c.json")[0], 0.0);
}

TEST(Parse, RefusesBytesThatAreNotUtf8AndNulBytes) {
  EXPECT_THAT(refusal("{\"a\": \"caf\xE9\"}"), AllOf(StartsWith("c.json:1:11: "), HasSubstr("not UTF-8")));
  EXPECT_THAT(refusal("{} // caf\xE9"), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal("\"\xC0\xAF\""), HasSubstr("not UTF-8")) << "overlong";
  EXPECT_THAT(refusal("\"\xED\xA0\x80\""), HasSubstr("not UTF-8")) << "surrogate";
  EXPECT_THAT(refusal("\"\xF4\x90\x80\x80\""), HasSubstr("not UTF-8")) << "beyond U+10FFFF";
  EXPECT_THAT(refusal("\"\xE2\x82"), HasSubstr("not UTF-8")) << "cut off";
  EXPECT_THAT(refusal(std::string("{}\0garbage", 10)), AllOf(StartsWith("c.json:1:3: "), HasSubstr("NUL")));
}

TEST(Parse, CountsColumnsInCharacters) { EXPECT_THAT(refusal("{\"é€😀\": NaN}"), StartsWith("c.json:1:9: NaN")); }

class LoadFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text) const {
    const std::filesystem::path file = folder_ / "ds_config.json";
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("dsat_load_file_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(LoadFile, ReadsAnObject) { EXPECT_EQ(load_file(write("{\"a\": 1}\n")), Json({{"a", 1}})); }

TEST_F(LoadFile, NamesAMissingFile) {
  const std::filesystem::path file = folder_ / "absent.json";
  EXPECT_THAT(error_of([&] { load_file(file); }), AllOf(StartsWith(file.string() + ": "), HasSubstr("No such file")));
}

TEST_F(LoadFile, RefusesADirectory) {
  EXPECT_THAT(error_of([&] { load_file(folder_); }), HasSubstr("is a directory"));
}

TEST_F(LoadFile, PutsItsPathBeforeSyntaxErrors) {
  const std::filesystem::path file = write("{\n\"a\": nul}");
  EXPECT_THAT(error_of([&] { load_file(file); }), StartsWith(file.string() + ":2:6: 'nul'"));
}

TEST_F(LoadFile, RefusesWhatIsNoObject) {
  const std::filesystem::path file = write("[1]");
  EXPECT_THAT(error_of([&] { load_file(file); }), HasSubstr("holds array"));
}

}  // namespace
}  // namespace dsat::config
