// The peak of activations with and without recomputation, against sums done by hand.
#include "dsat/cost/activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/error.h"

namespace dsat::cost {
namespace {

// Eight equal layers that keep 10 bytes, of which 2 are their output.
const std::vector<LayerActivations> kEqual(8, {10, 2});

TEST(ActivationPeakTest, WithoutSegmentsEverythingIsKeptUntilBackwardBegins) {
  EXPECT_EQ(activation_peak_bytes(kEqual), 8 * 10 + 2 + 2);  // and the gradients of the last layer's output and input
  EXPECT_EQ(activation_peak_bytes({}), 0);
}

TEST(ActivationPeakTest, WithSegmentsTheirInputsAndOneSegmentAreHeld) {
  // The last of four: three inputs that are counted, its own two layers, its gradients; its output and that one's
  // gradient stay.
  EXPECT_EQ(activation_peak_bytes(kEqual, {2, 4, 6, 8}), 3 * 2 + 2 * 10 + 2 + 2 + 2 * 2);
  EXPECT_EQ(activation_peak_bytes(kEqual, {8}), activation_peak_bytes(kEqual) + 2 * 2);
}

TEST(ActivationPeakTest, AnEarlySegmentDecidesWhereItsLayersAreTheLargest) {
  std::vector<LayerActivations> layers = kEqual;
  layers[0].kept_bytes = layers[1].kept_bytes = 100;
  EXPECT_EQ(activation_peak_bytes(layers, {2, 4, 6, 8}), 200 + 2 + 2 + 2 * 2);  // nothing of the later ones is left
}

TEST(ActivationPeakTest, WorkingMemoryAndAParametersGradientAreTakenByOneLayerAtATime) {
  std::vector<LayerActivations> layers = kEqual;
  for (LayerActivations& layer : layers) {
    layer.working_bytes = 4;
    layer.largest_parameter_bytes = 3;
  }
  EXPECT_EQ(activation_peak_bytes(layers), activation_peak_bytes(kEqual) + 7);
  EXPECT_EQ(activation_peak_bytes(layers, {4, 8}), activation_peak_bytes(kEqual, {4, 8}) + 7);
}

TEST(ActivationPeakTest, TheLossBehindTheSegmentsKeepsWhatItComputes) {
  std::vector<LayerActivations> layers = kEqual;
  layers.push_back({50, 1});
  // Three inputs, the output, the loss, the gradients of both.
  EXPECT_EQ(activation_peak_bytes(layers, {2, 4, 6, 8}), 3 * 2 + 2 + 50 + 2 + 1);
}

TEST(ActivationPeakTest, SegmentsThatDoNotAscendAreRefused) {
  EXPECT_THROW(activation_peak_bytes(kEqual, {4, 4}), Error);
  EXPECT_THROW(activation_peak_bytes(kEqual, {4, 2}), Error);
  EXPECT_THROW(activation_peak_bytes(kEqual, {9}), Error);
  EXPECT_THROW(activation_peak_bytes(kEqual, {0}), Error);
}

}  // namespace
}  // namespace dsat::cost
