// Names that are nearly those that were meant.
#include "dsat/base/spelling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dsat {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(edit_distance("stage", "stage"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("stgae", "stage"), 1u);
  EXPECT_EQ(edit_distance("stag", "stage"), 1u);
  EXPECT_EQ(edit_distance("staage", "stage"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

// Every pair of texts of at most five letters, with every bound: the same as without one, but for the bound.
TEST(EditDistance, IsNoMoreThanEnough) {
  std::vector<std::string> texts{""};
  for (size_t i = 0; texts[i].size() < 5; ++i) {
    for (const char letter : {'a', 'b'}) texts.push_back(texts[i] + letter);
  }
  for (const std::string& a : texts) {
    for (const std::string& b : texts) {
      const size_t distance = edit_distance(a, b);
      for (size_t enough = 0; enough <= 6; ++enough) {
        ASSERT_EQ(edit_distance(a, b, enough), std::min(distance, enough)) << a << ", " << b << ", " << enough;
      }
    }
  }
}

TEST(NearestName, IsTheFirstOfTheNearest) {
  EXPECT_EQ(nearest_name("stgae", {"state", "stage", "slots"}, 2), "stage");
  EXPECT_EQ(nearest_name("stave", {"state", "stage"}, 2), "state");
  EXPECT_EQ(nearest_name("stage", {"stage"}, 0), "stage");
  EXPECT_EQ(nearest_name("bucket", {"state", "stage"}, slip_tolerance("bucket")), "");
  EXPECT_EQ(nearest_name("stage", {}, 9), "");
}

// Whatever is left out early: the answer is that of all distances.
TEST(NearestName, IsWhatAllDistancesSay) {
  const std::vector<std::string_view> known{"stage", "slots", "stages", "bucket_size", "micro_batch", "a", "", "tsage"};
  for (const std::string_view typed :
       {"stage", "stag", "xtage", "slot", "buckt_size", "micro batch", "b", "ab", "", "zzz"}) {
    for (size_t tolerance = 0; tolerance <= 6; ++tolerance) {
      std::string_view nearest;
      size_t least = tolerance + 1;
      for (const std::string_view name : known) {
        const size_t distance = edit_distance(typed, name);
        if (distance < least) nearest = name;
        least = std::min(least, distance);
      }
      EXPECT_EQ(nearest_name(typed, known, tolerance), nearest) << typed << ", " << tolerance;
    }
  }
}

TEST(NearestName, ATextOfAnyLengthIsComparedWithNoNameThatIsTooShort) {
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'a'), {"stage", std::string(100, 'a')}, 1 << 18), "");
  EXPECT_EQ(nearest_name("stages", {"stage"}, 1), "stage");
  EXPECT_EQ(nearest_name("stagess", {"stage"}, 1), "");
}

TEST(NearestName, ALongNameMayHaveMoreSlips) {
  EXPECT_EQ(slip_tolerance("ab"), 2u);
  EXPECT_EQ(slip_tolerance("twenty letters long."), 5u);
}

}  // namespace
}  // namespace dsat
