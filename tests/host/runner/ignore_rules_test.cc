// .detignore: which paths its patterns leave out.
#include "runner/ignore_rules.h"

#include <gtest/gtest.h>

namespace dsat::host {
namespace {

bool ignores(const char* text, const char* path, bool is_folder = false) {
  return IgnoreRules(text).ignores(path, is_folder);
}

TEST(IgnoreRules, NothingIsIgnoredWithoutPatterns) {
  EXPECT_FALSE(ignores("", "data"));
  EXPECT_FALSE(ignores("# data\n\n  \n!\n/\n", "data"));
}

TEST(IgnoreRules, ANameMatchesAtAnyDepth) {
  EXPECT_TRUE(ignores("*.pt\r\n", "model.pt"));
  EXPECT_TRUE(ignores("*.pt", "out/deep/model.pt"));
  EXPECT_FALSE(ignores("*.pt", "model.pth"));
  EXPECT_TRUE(ignores(".*", ".git", true));
  EXPECT_TRUE(ignores("[ab]?", "b1"));
}

TEST(IgnoreRules, ASlashTiesAPatternToTheTop) {
  EXPECT_TRUE(ignores("/data", "data"));
  EXPECT_FALSE(ignores("/data", "src/data"));
  EXPECT_TRUE(ignores("src/*.bin", "src/x.bin"));
  EXPECT_FALSE(ignores("src/*.bin", "src/deep/x.bin"));
}

TEST(IgnoreRules, TwoStarsStandForAnyFolders) {
  EXPECT_TRUE(ignores("a/**/z", "a/z"));
  EXPECT_TRUE(ignores("a/**/z", "a/b/c/z"));
  EXPECT_TRUE(ignores("**/z", "b/z"));
  EXPECT_TRUE(ignores("a/**", "a/b"));
  EXPECT_FALSE(ignores("a/**", "a", true));
}

TEST(IgnoreRules, ASlashAtTheEndMeansFolders) {
  EXPECT_TRUE(ignores("data/", "data", true));
  EXPECT_TRUE(ignores("data/", "src/data", true));
  EXPECT_FALSE(ignores("data/", "data", false));
}

TEST(IgnoreRules, TheLastPatternHolds) {
  EXPECT_FALSE(ignores("*.json\n!ds_config.json\n", "ds_config.json"));
  EXPECT_TRUE(ignores("!ds_config.json\n*.json\n", "ds_config.json"));
}

}  // namespace
}  // namespace dsat::host
