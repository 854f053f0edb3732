// What a plugin declares is checked before it is used: the bounds of its options and their defaults.
#include "plugin/descriptor_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/option.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  EXPECT_THAT(problem_of_name(""), HasSubstr("name is empty"));
  EXPECT_THAT(problem_of_name("a/b"), HasSubstr("'a/b'"));
  for (const char* name : {"a\nb", "a\x1b[2Jb", "a\x7f", "b\xfc", "end "}) {
    EXPECT_THAT(problem_of_name(name), AllOf(HasSubstr("control characters"), HasSubstr("UTF-8"))) << name;
  }
}

TEST(DescriptorCheck, ADefaultWithinItsBoundsIsSound) {
  EXPECT_EQ(problem_of_option(OptionSpec::integer("n", 5, "").min(5).max(5)), "");
  EXPECT_EQ(problem_of_option(OptionSpec::number("ratio", 0.5, "").min(0).max(1)), "");
  EXPECT_EQ(problem_of_option(OptionSpec::string("name", "x", "")), "");
}

TEST(DescriptorCheck, ADefaultOutOfItsBoundsIsRefused) {
  EXPECT_THAT(problem_of_option(OptionSpec::integer("n", 5, "").max(3)),
              AllOf(HasSubstr("option 'n'"), HasSubstr("default 5"), HasSubstr("max 3")));
  EXPECT_THAT(problem_of_option(OptionSpec::number("ratio", 0.5, "").min(0.75).max(1)),
              AllOf(HasSubstr("option 'ratio'"), HasSubstr("default 0.5"), HasSubstr("min 0.75")));
  EXPECT_NE(problem_of_option(OptionSpec::integer("n", 5, "").min(9).max(3)), "");
}

TEST(DescriptorCheck, ABoundOfAnythingButANumberIsRefused) {
  EXPECT_THAT(problem_of_option(OptionSpec::string("name", "x", "").min(3)),
              AllOf(HasSubstr("option 'name'"), HasSubstr("a min"), HasSubstr("not for string")));
  EXPECT_THAT(problem_of_option(OptionSpec::boolean("fast", true, "").max(1)),
              AllOf(HasSubstr("option 'fast'"), HasSubstr("a max"), HasSubstr("not for bool")));
  EXPECT_THAT(problem_of_option(OptionSpec::choice("way", {"up"}, "up", "").max(1)),
              AllOf(HasSubstr("option 'way'"), HasSubstr("a max"), HasSubstr("not for choice")));
}

}  // namespace
}  // namespace dsat::host
