// How many floating-point operations forward and backward count.
// Small shapes, whose numbers can be counted by hand.
#include "measure/flops.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>

namespace dsat::trainer {
namespace {

double flops_of(const std::function<at::Tensor()>& forward) {
  const FlopsCounter counter;
  forward().sum().backward();
  return counter.flops();
}

at::Tensor trained(at::IntArrayRef shape) { return at::ones(shape).set_requires_grad(true); }

TEST(FlopsCounterTest, AMatrixProductAndItsTwoGradients) {
  const at::Tensor a = trained({3, 4}), b = trained({4, 5});
  EXPECT_EQ(flops_of([&] { return a.mm(b); }), 3 * 2 * 3 * 4 * 5);
}

// A traced module calls the inner operator.
TEST(FlopsCounterTest, AConvolutionHoweverItIsCalled) {
  const at::Tensor x = trained({2, 4, 8, 8}), weight = trained({6, 2, 3, 3});
  const double expected = 3 * 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3);
  EXPECT_EQ(flops_of([&] { return at::conv2d(x, weight, {}, 2, 1, 1, /*groups=*/2); }), expected);
  EXPECT_EQ(flops_of([&] {
              return at::_convolution(x, weight, {}, {2, 2}, {1, 1}, {1, 1}, /*transposed=*/false, {0, 0},
                                      /*groups=*/2, false, false, true, true);
            }),
            expected);
}

TEST(FlopsCounterTest, ATransposedConvolutionUsesEachInputOnceForEachOfItsFilter) {
  const at::Tensor x = trained({2, 4, 8, 8}), weight = trained({4, 6, 3, 3});
  EXPECT_EQ(flops_of([&] { return at::conv_transpose2d(x, weight, {}, 2, 1); }), 3 * 2 * (2 * 4 * 8 * 8) * (6 * 3 * 3));
}

}  // namespace
}  // namespace dsat::trainer
