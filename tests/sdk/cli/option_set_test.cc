// Finding options by their spellings, and suggestions for those that do not exist.
#include "dsat/cli/option_set.h"

#include <gtest/gtest.h>

namespace dsat::cli_kit {
namespace {

OptionSet two_options() {
  OptionSet set;
  set.add(Option::integer("max-trials", "at most").also("-mt"));
  set.add(Option::text("metric", "NAME", "which"));
  return set;
}

TEST(OptionSet, FindsByEverySpelling) {
  const OptionSet set = two_options();
  for (const char* spelling : {"--max-trials", "--max_trials", "-mt"}) {
    ASSERT_NE(set.find(spelling), nullptr) << spelling;
    EXPECT_EQ(set.find(spelling)->name, "max-trials");
  }
  for (const char* spelling : {"max-trials", "-max-trials", "--mt", "--max", "-", "--", ""}) {
    EXPECT_EQ(set.find(spelling), nullptr) << spelling;
  }
}

TEST(OptionSet, SuggestsWhatIsNear) {
  const OptionSet set = two_options();
  EXPECT_EQ(set.nearest("--max-trails"), "--max-trials");
  EXPECT_EQ(set.nearest("--max_trial"), "--max-trials");
  EXPECT_EQ(set.nearest("-metric"), "--metric");
  EXPECT_EQ(set.nearest("--max"), "--max-trials");
}

TEST(OptionSet, SuggestsWhatEndsWithTheSameWord) {
  OptionSet set = two_options();
  Option folder;
  folder.name = "output-dir";
  Option other;
  other.name = "sim";
  set.add_group("more", {other, folder});
  EXPECT_EQ(set.nearest("--run_dir"), "--output-dir");
  EXPECT_EQ(set.nearest("--dir"), "--output-dir");
  EXPECT_EQ(set.nearest("--sin"), "--sim");
}

TEST(OptionSet, SuggestsNothingFar) { EXPECT_EQ(two_options().nearest("--frobnicate"), ""); }

TEST(OptionSet, FindsExactlyWhereUnderscoresAreNoHyphens) {
  const OptionSet set = two_options();
  EXPECT_NE(set.find_exactly("--max-trials"), nullptr);
  EXPECT_NE(set.find_exactly("-mt"), nullptr);
  EXPECT_EQ(set.find_exactly("--max_trials"), nullptr);
}

TEST(Display, NamesTheShortSpellings) {
  EXPECT_EQ(display(*two_options().find("-mt")), "--max-trials (-mt)");
  EXPECT_EQ(display(*two_options().find("--metric")), "--metric");
}

}  // namespace
}  // namespace dsat::cli_kit
