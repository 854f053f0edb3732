// YAML as the experiment form reads it: types, aliases, places, and files that are refused.
#include "dsat/yaml/yaml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class YamlFileTest : public ::testing::Test {
 protected:
  YamlFile load(const std::string& text) {
    write_text(file_, text);
    return YamlFile::load(file_);
  }
  Json root(const std::string& text) { return load(text).root(); }
  // What load() says, without the file's name.
  std::string complaint(const std::string& text) {
    const std::string message = error_of([&] { load(text); });
    EXPECT_THAT(message, StartsWith(file_.string() + ":"));
    return message.substr(std::min(message.size(), file_.string().size() + 1));
  }

  const TempDir temp_;
  const std::filesystem::path file_ = temp_.path() / "file.yaml";
};

TEST_F(YamlFileTest, ScalarsHaveTheTypesOfTheCoreSchema) {
  EXPECT_EQ(root("{a: 1, b: -2, c: 1_000_000, d: 0x1F, e: 0o17, f: 1e-5, g: 1.5, h: .5, i: +3}"),
            Json::parse(R"({"a": 1, "b": -2, "c": 1000000, "d": 31, "e": 15, "f": 1e-5, "g": 1.5, "h": 0.5, "i": 3})"));
  EXPECT_EQ(root("{a: 9223372036854775808, b: 18446744073709551615}"),
            Json::parse(R"({"a": 9223372036854775808, "b": 18446744073709551615})"));
  EXPECT_TRUE(root("{a: 9223372036854775808}")["a"].is_number_integer());
  EXPECT_EQ(root("{a: true, b: False, c: ~, d: , e: null}"),
            Json::parse(R"({"a": true, "b": false, "c": null, "d": null, "e": null})"));
  EXPECT_EQ(
      root("{a: yes, b: '1', c: !!str 2, d: 1.2.3, e: _1, f: 12h, g: -, h: e5}"),
      Json::parse(R"({"a": "yes", "b": "1", "c": "2", "d": "1.2.3", "e": "_1", "f": "12h", "g": "-", "h": "e5"})"));
}

TEST_F(YamlFileTest, AliasesAndMergeKeysAreWrittenOut) {
  EXPECT_EQ(root("base: &b {x: 1, y: 2}\nother:\n  <<: *b\n  y: 3\nlist: [*b]\n")["other"],
            Json::parse(R"({"y": 3, "x": 1})"));
  EXPECT_EQ(root("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}\n")["c"], Json::parse(R"({"x": 1, "z": 3})"));
  EXPECT_THAT(complaint("a: 1\nb:\n  <<: 3\n"), HasSubstr("<< merges"));
}

TEST_F(YamlFileTest, WhoNeedsWordsGetsThemAsTheyAreSpelled) {
  const YamlFile yaml = YamlFile::parse("n: 1.10\nb: &b {x: 5e8, y: True, z: ~}\nc: {<<: *b, x: [0x10, 'a']}\n", file_);
  EXPECT_EQ(yaml.text("n"), "1.10");
  EXPECT_EQ(*yaml.find_spelled("c"), Json::parse(R"({"x": ["0x10", "a"], "y": "True", "z": null})"));
  EXPECT_EQ(yaml.find_spelled("b.z"), nullptr);
}

TEST_F(YamlFileTest, FoldedTextIsOneLine) {
  EXPECT_EQ(root("entrypoint: >-\n  python3\n  train.py\n")["entrypoint"], "python3 train.py");
}

TEST_F(YamlFileTest, TabsStandInFoldedTextAndInJson) {
  EXPECT_EQ(root("a:\n  b: |  # as it is\n    x\n\n    \ty\n  c: 1\n")["a"]["b"], "x\n\n\ty\n");
  EXPECT_EQ(root("{\n\t\"a\": {\n\t\t\"b\": [1,\n\t\t2]\n\t}\n}\n"), Json::parse(R"({"a": {"b": [1, 2]}})"));
}

TEST_F(YamlFileTest, EveryValueHasItsPlace) {
  const YamlFile yaml = load("name: x\nresources:\n  slots_per_trial: 2\n");
  EXPECT_EQ(yaml.where("resources.slots_per_trial"), file_.string() + ":3:3");
  EXPECT_EQ(yaml.where("resources.absent"), file_.string() + ":2:1");
  EXPECT_EQ(yaml.where("absent"), file_.string());
  EXPECT_EQ(error_of([&] { yaml.refuse("name", "is wrong"); }), file_.string() + ":1:1: name is wrong");
}

TEST_F(YamlFileTest, SaysWhereItCannotBeRead) {
  EXPECT_THAT(complaint("a:\n\tb: 1\n"), StartsWith("2:1: a tab"));
  EXPECT_THAT(complaint("a: >\n  x\n\tb: 1\n"), StartsWith("3:1: a tab"));
  EXPECT_THAT(complaint("a: x | y\n  \tz\n"), StartsWith("2:3: a tab"));
  EXPECT_THAT(complaint("a: 1\nb: 2\na: 3\n"), AllOf(StartsWith("3:1: "), HasSubstr("'a' is there twice")));
  EXPECT_THAT(complaint("a: {b: 1, b: 2}\n"), AllOf(StartsWith("1:11: "), HasSubstr("'a.b' is there twice")));
  EXPECT_THAT(complaint("a: &x [*x]\n"), StartsWith("1:4: "));
  EXPECT_THAT(complaint("a: *nowhere\n"), AllOf(StartsWith("1:4: "), HasSubstr("anchor")));
  EXPECT_THAT(complaint("a: [1, 2\nb: 3\n"), StartsWith("2:"));
  EXPECT_THAT(complaint("a: {b: 1\n"), StartsWith("2:1: a bracket"));
  EXPECT_THAT(complaint("a: \"\\q\"\n"), StartsWith("1:7: "));
  EXPECT_THAT(complaint("a: b: c\n"), StartsWith("1:5: not YAML"));
  EXPECT_THAT(complaint("---\na: 1\n---\nb: 2\n"), HasSubstr("second document"));
  EXPECT_THAT(complaint("a: .nan\n"), StartsWith("1:4: '.nan'"));
  EXPECT_THAT(complaint("a: 1e999\n"), HasSubstr("'1e999'"));
  EXPECT_THAT(complaint("a: !mine 1\n"), HasSubstr("!mine"));
  EXPECT_THAT(complaint("? [1]\n: 2\n"), HasSubstr("a name"));
  EXPECT_THAT(complaint("[1, 2]\n"), HasSubstr("keys and values"));
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint("# nothing\n"), HasSubstr("is empty"));
  EXPECT_THAT(complaint(std::string("a: \0", 4)), HasSubstr("UTF-8"));
  EXPECT_THAT(complaint("a: \xff\n"), HasSubstr("UTF-8"));
}

TEST_F(YamlFileTest, SmallFilesThatStandForMuchAreRefused) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = std::to_string(i - 1), here = std::to_string(i);
    bomb += "a" + here + ": &a" + here + " [*a" + before + ", *a" + before + "]\n";
  }
  EXPECT_THAT(complaint(bomb), HasSubstr("100,000 values"));
  const std::string deep = "a: " + std::string(150, '[') + std::string(150, ']') + "\n";
  EXPECT_THAT(complaint(deep), HasSubstr("100 levels"));
}

TEST_F(YamlFileTest, TabsThatIndentNothingAreLeftAlone) {
  EXPECT_EQ(root("a: 1\t# so\n\t\n\t# and so\nb: |\n  x\ty\n")["b"], "x\ty\n");
}

TEST_F(YamlFileTest, ReadersRefuseOtherTypes) {
  const YamlFile yaml = load("name: 3\nlist: [1]\nnothing: ~\n");
  EXPECT_EQ(yaml.text("name"), "3");
  EXPECT_EQ(yaml.text("nothing"), "");
  EXPECT_EQ(yaml.find("nothing"), nullptr);
  EXPECT_THAT(error_of([&] { yaml.text("list"); }),
              AllOf(HasSubstr(":2:1: list"), HasSubstr("a text"), HasSubstr("[1]")));
  EXPECT_THAT(error_of([&] { yaml.find_object("list"); }), AllOf(HasSubstr("list must"), HasSubstr("keys and values")));
}

TEST(YamlFileLoad, AMissingFileAndAFolderAreNamed) {
  EXPECT_THAT(error_of([] { YamlFile::load("/nowhere.yaml"); }), HasSubstr("/nowhere.yaml: no such"));
  EXPECT_THAT(error_of([] { YamlFile::load("/"); }), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace dsat
