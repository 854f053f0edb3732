// Which settings the formula of memory knows, and how far the others may lead it astray.
#include "cost/posterior/memory_hypotheses.h"

#include <gtest/gtest.h>

namespace dsat::tests {
namespace {

using cost::ModelAxis;

TEST(MemoryHypotheses, TheFormulaKnowsBucketsOverlapAndOffload) {
  EXPECT_TRUE(cost::is_bucket("zero_optimization.reduce_bucket_size"));
  EXPECT_FALSE(cost::is_bucket("zero_optimization.overlap_comm"));
  for (const char* key : {"zero_optimization.allgather_bucket_size", "zero_optimization.overlap_comm",
                          "zero_optimization.offload_optimizer.device"}) {
    EXPECT_TRUE(cost::known_to_formula(key)) << key;
  }
  EXPECT_FALSE(cost::known_to_formula("zero_optimization.contiguous_gradients"));
  EXPECT_FALSE(cost::known_to_formula("activation_checkpointing.partition_activations"));
}

TEST(MemoryHypotheses, ASampleTakesMoreOrLessByWhatNobodyKnowsAndByFragments) {
  std::vector<ModelAxis> axes(3);
  axes[0].key = "zero_optimization.reduce_bucket_size";
  axes[1].key = "zero_optimization.contiguous_gradients";
  axes[2].key = "hidden_layers_of_my_own";
  const auto growth = cost::formula_hypothesis(axes).growth.axes;
  ASSERT_EQ(growth.size(), 3u);
  EXPECT_GT(growth[1], 5 * growth[0]);
  EXPECT_GT(growth[2], 2 * growth[1]);
}

}  // namespace
}  // namespace dsat::tests
