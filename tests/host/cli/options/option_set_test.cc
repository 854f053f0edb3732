#include "options/option_set.h"

#include <gtest/gtest.h>

namespace dsat::cli {
namespace {

OptionSet two_options() {
  Option trials, metric, refused;
  trials.name = "max-trials";
  trials.others = {"-mt"};
  metric.name = "metric";
  refused.name = "autotuning";
  refused.refusal = "not here";
  OptionSet set;
  set.add(trials);
  set.add(metric);
  set.add(refused);
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

TEST(OptionSet, SuggestsNeitherTheFarNorTheRefused) {
  const OptionSet set = two_options();
  EXPECT_EQ(set.nearest("--frobnicate"), "");
  EXPECT_EQ(set.nearest("--autotunin"), "");
}

TEST(Display, NamesTheShortSpellings) {
  EXPECT_EQ(display(*two_options().find("-mt")), "--max-trials (-mt)");
  EXPECT_EQ(display(*two_options().find("--metric")), "--metric");
}

}  // namespace
}  // namespace dsat::cli
