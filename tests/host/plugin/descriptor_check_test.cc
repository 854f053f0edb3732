// What a plugin declares is checked before it is used: the bounds of its options and their defaults.
#include "plugin/descriptor_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/option.h"

namespace dsat::host {
namespace {

std::string problem_of_option(const OptionSpec& option) {
  PluginInfo info;
  info.name = "test";
  info.options = Json::array({option.json()});
  info.study = Json::object();
  return problem_of(info);
}

std::string problem_of_name(const std::string& name) {
  PluginInfo info;
  info.name = name;
  info.options = Json::array();
  info.study = Json::object();
  return problem_of(info);
}

TEST(DescriptorCheck, ANameIsOneThatPeopleCanReadAndType) {
  EXPECT_EQ(problem_of_name("my climber"), "");
  EXPECT_EQ(problem_of_name("h\xc3\xbcgel"), "");
  EXPECT_EQ(problem_of_name(""), "its name is empty");
  EXPECT_EQ(problem_of_name("a/b"), "its name 'a/b' has a '/'");
  for (const char* name : {"a\nb", "a\x1b[2Jb", "a\x7f", "b\xfc", "end "}) {
    EXPECT_THAT(problem_of_name(name), ::testing::HasSubstr("has control characters, bytes that are not UTF-8"))
        << name;
  }
}

TEST(DescriptorCheck, ADefaultWithinItsBoundsIsSound) {
  EXPECT_EQ(problem_of_option(OptionSpec::integer("n", 5, "").min(5).max(5)), "");
  EXPECT_EQ(problem_of_option(OptionSpec::number("ratio", 0.5, "").min(0).max(1)), "");
  EXPECT_EQ(problem_of_option(OptionSpec::string("name", "x", "")), "");
}

TEST(DescriptorCheck, ADefaultOutOfItsBoundsIsRefused) {
  EXPECT_EQ(problem_of_option(OptionSpec::integer("n", 5, "").max(3)),
            "option 'n' has the default 5, above its max 3; change one of them");
  EXPECT_EQ(problem_of_option(OptionSpec::number("ratio", 0.5, "").min(0.75).max(1)),
            "option 'ratio' has the default 0.5, below its min 0.75; change one of them");
  EXPECT_NE(problem_of_option(OptionSpec::integer("n", 5, "").min(9).max(3)), "");
}

TEST(DescriptorCheck, ABoundOfAnythingButANumberIsRefused) {
  EXPECT_EQ(problem_of_option(OptionSpec::string("name", "x", "").min(3)),
            "option 'name' has a min, which is for int and number, not for string; leave it out");
  EXPECT_EQ(problem_of_option(OptionSpec::boolean("fast", true, "").max(1)),
            "option 'fast' has a max, which is for int and number, not for bool; leave it out");
  EXPECT_EQ(problem_of_option(OptionSpec::choice("way", {"up"}, "up", "").max(1)),
            "option 'way' has a max, which is for int and number, not for choice; leave it out");
}

}  // namespace
}  // namespace dsat::host
