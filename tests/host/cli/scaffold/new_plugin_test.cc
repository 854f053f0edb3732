// What a new searcher is made of: every file has the new name where the example had its own.
#include "scaffold/new_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> paths_of(const NewPlugin& plugin) {
  std::vector<std::string> paths;
  for (const NewFile& file : plugin.files) paths.push_back(file.path);
  return paths;
}

TEST(NewPlugin, HasSourceBuildFileAndTest) {
  EXPECT_THAT(paths_of(new_plugin("tall", "c")), ElementsAre("tall.c", "CMakeLists.txt", "dsat/abi.h"));
  EXPECT_THAT(paths_of(new_plugin("tall", "c++")), ElementsAre("tall.cc", "tall_test.cc", "CMakeLists.txt"));
  EXPECT_THAT(paths_of(new_plugin("tall", "python")), ElementsAre("tall.py", "test_tall.py"));
  EXPECT_THAT(paths_of(new_plugin("tall", "rust")),
              ElementsAre("Cargo.toml", "src/lib.rs", "src/abi.rs", "tests/validate.rs"));
}

TEST(NewPlugin, BearsItsNameEverywhere) {
  for (const std::string& language : languages_of_plugins()) {
    const NewPlugin plugin = new_plugin("very_tall", language);
    std::string text;
    for (const NewFile& file : plugin.files) text += file.text;
    EXPECT_THAT(text, HasSubstr("very_tall")) << language;
    for (const char* of_example : {"ladder", "Climb ", "climb.", "climb\"", "RandomSearch", "random_search"}) {
      EXPECT_THAT(text, Not(HasSubstr(of_example))) << language;
    }
  }
  EXPECT_THAT(new_plugin("very_tall", "c++").files[0].text,
              AllOf(HasSubstr("class VeryTall : public dsat::Searcher<VeryTall>"), HasSubstr("climbing stage")));
}

TEST(NewPlugin, ANameThatWouldNotDoIsRefused) {
  for (const std::string name : {"", "Tall", "1st", "a-b", "a/b", "../a", "a b", "\xc3\xa4", "_a"}) {
    EXPECT_THAT(error_of([&] { new_plugin(name, "c"); }), HasSubstr("lower-case letters")) << name;
  }
  EXPECT_THAT(error_of([&] { new_plugin(std::string(65, 'a'), "c"); }), HasSubstr("at most 64"));
  for (const std::string name : {"asha", "guided", "test", "none", "searcher"}) {
    EXPECT_THAT(error_of([&] { new_plugin(name, "c"); }), HasSubstr("my_" + name));
  }
}

}  // namespace
}  // namespace dsat::cli
