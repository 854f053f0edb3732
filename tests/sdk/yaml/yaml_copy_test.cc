// Copies of YAML files: what is changed, and what keeps its spelling.
#include "dsat/yaml/yaml_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat {
namespace {

using ::testing::HasSubstr;

YamlCopy copy_of(const std::string& text) { return YamlCopy(text, "x.yaml"); }

TEST(YamlCopyTest, OtherEntriesKeepTheirLines) {
  YamlCopy copy = copy_of("# mine\na: no  # a text for one reader\nb: 1\n\n# of c\nc: 'no'\n");
  copy.set("b", 2);
  copy.set("d", "x: y");
  EXPECT_EQ(copy.text(), "# mine\na: no  # a text for one reader\nb: 2\n\n# of c\nc: 'no'\nd: \"x: y\"\n");
}

TEST(YamlCopyTest, AChangedEntryKeepsTheSpellingOfItsOtherValues) {
  YamlCopy copy = copy_of(
      "s:\n  n: 1.10  # lost\n  e: 5e8\n  t: 'no'\n  f: no\n  l: [a, {x: 'y'}, []]\n  b: |\n    p\n    q\n  z:\n"
      "  o: {}\nr: |\n  # text\n");
  copy.set("s.n", 2);
  copy.erase("s.e");
  EXPECT_EQ(
      copy.text(),
      "s:\n  n: 2\n  t: \"no\"\n  f: no\n  l:\n    - a\n    -\n      x: \"y\"\n    - []\n  b: \"p\\nq\\n\"\n  z:\n"
      "  o: {}\nr: |\n  # text\n");
}

TEST(YamlCopyTest, JsonStaysJsonAndOneLineFormsAreWrittenAnew) {
  YamlCopy json = copy_of("{\"a\": {\"b\": \"no\", \"c\": 3}, \"d\": true}");
  json.erase("a.c");
  json.set("a.b", "\\");
  EXPECT_EQ(Json::parse(json.text()), Json::parse(R"({"a": {"b": "\\"}, "d": true})"));
  YamlCopy flow = copy_of("a: {b: 1, c: {d: 2}}\ne: 1\n");
  flow.set("a.c.d", 3);
  EXPECT_EQ(flow.text(), "a:\n  b: 1\n  c:\n    d: 3\ne: 1\n");
}

TEST(YamlCopyTest, AnEntryAtTheTopIsLeftOut) {
  YamlCopy copy = copy_of("a: 1\nb:\n  c: 2\n# of d\nd: 3");
  copy.erase("b");
  EXPECT_EQ(copy.text(), "a: 1\n# of d\nd: 3\n");
  YamlCopy all = copy_of("a: 1\n");
  all.erase("a");
  EXPECT_EQ(all.text(), "{}\n");
}

TEST(YamlCopyTest, AnchorsAreWrittenOut) {
  YamlCopy copy = copy_of("a: &x {p: 1, q: 'no'}\nb: *x\nc:\n  <<: *x\n  p: 4\n");
  copy.set("c.q", "yes");
  const std::string text = copy.text();
  EXPECT_EQ(YamlFile::parse(text, "y").root(),
            Json::parse(R"({"a": {"p": 1, "q": "no"}, "b": {"p": 1, "q": "no"}, "c": {"p": 4, "q": "yes"}})"));
  EXPECT_THAT(text, HasSubstr("b: *x\n")) << "the other entries keep their lines";
  YamlCopy anchored = copy_of("a: &x {p: 1}\nb: *x\n");
  anchored.set("a.q", 1);
  EXPECT_THAT(error_of([&] { anchored.text(); }), HasSubstr("x.yaml: a trial needs other values there"))
      << "the alias would get the value, too";
}

TEST(YamlCopyTest, AValueOfAnotherKindIsNotReplacedByAnObject) {
  for (const char* text : {"a: 1\n", "a: [1]\n", "{\"a\": \"b\"}"}) {
    YamlCopy copy = copy_of(text);
    copy.set("a.b", 1);
    EXPECT_THAT(error_of([&] { copy.text(); }), HasSubstr("cannot be changed")) << text;
  }
  YamlCopy empty = copy_of("a:\n");
  empty.set("a.b", 1);
  EXPECT_EQ(empty.text(), "a:\n  b: 1\n");
}

}  // namespace
}  // namespace dsat
