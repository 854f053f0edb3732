// Segments cover all layers once, in their order, and differ by one layer at most.
// Every small number of layers is tried with every number of segments.
#include "layout/recompute_segments.h"

#include <gtest/gtest.h>

namespace dsat::trainer {
namespace {

TEST(SegmentsTest, CoverEveryLayerOnceInOrder) {
  for (size_t layers = 1; layers <= 30; ++layers) {
    for (int64_t count = 0; count <= 31; ++count) {
      size_t next = 0;
      for (const Segment& segment : segments_of(layers, count)) {
        EXPECT_EQ(segment.begin, next);
        EXPECT_GT(segment.end, segment.begin);
        next = segment.end;
      }
      EXPECT_EQ(next, layers) << count;
    }
  }
}

TEST(SegmentsTest, LengthsDifferByOneAtMost) {
  const Segments segments = segments_of(11, 4);
  ASSERT_EQ(segments.size(), 4u);
  for (const Segment& segment : segments) {
    EXPECT_GE(segment.end - segment.begin, 2u);
    EXPECT_LE(segment.end - segment.begin, 3u);
  }
}

TEST(SegmentsTest, AnIntervalIsTheMostLayersOfOne) {
  for (int64_t interval = 1; interval <= 12; ++interval) {
    const Segments segments = segments_of_interval(11, interval);
    EXPECT_EQ(segments.size(), static_cast<size_t>((11 + interval - 1) / interval));
    for (const Segment& segment : segments) EXPECT_LE(segment.end - segment.begin, static_cast<size_t>(interval));
  }
}

TEST(SegmentsTest, AreTheSquareRootOfTheLayersUnlessTheirNumberIsGiven) {
  EXPECT_EQ(segments_of(16, 0).size(), 4u);
  EXPECT_EQ(segments_of(1, 0).size(), 1u);
  EXPECT_EQ(segments_of(16, 2).size(), 2u);
  EXPECT_EQ(segments_of(16, 1000).size(), 16u);
}

}  // namespace
}  // namespace dsat::trainer
