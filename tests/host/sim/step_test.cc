// The analytic model: where its formulas can be checked by hand, and which way each knob turns.
#include "sim/step.h"

#include <gtest/gtest.h>

#include "dsat/config/json.h"
#include "scenarios.h"
#include "sim/collectives.h"

namespace dsat::host::sim {
namespace {

Json config(const Json& changes) {
  Json config{{"train_micro_batch_size_per_gpu", 4}, {"bf16", {{"enabled", true}}}, {"optimizer", {{"type", "Adam"}}}};
  config.merge_patch(changes);
  return config;
}
Json zero(const Json& section) { return {{"zero_optimization", section}}; }

StepTime time_of(const Json& changes, const Scenario& s = scenario(), int slots = 16) {
  return step_time(s, run_from_config(s, config(changes), slots));
}
Memory memory_of(const Json& changes, const Scenario& s = scenario(), int slots = 16) {
  return step_memory(s, run_from_config(s, config(changes), slots));
}

TEST(Ring, FollowsTheAlphaBetaModel) {
  const Scenario s = scenario({{"cluster", {{"intra_node_latency_us", 2}, {"inter_node_latency_us", 10}}},
                               {"engine", {{"collective_overhead_us", 5}}}});
  const Ring ring(s, 16, 1);  // 7 hops inside a node, 1 between; the cards' 100 GB/s
  EXPECT_DOUBLE_EQ(ring.gather(1e9, 1), 29e-6 + 15.0 / 16 * 0.01);
  EXPECT_DOUBLE_EQ(ring.all_reduce(1e9, 1), 53e-6 + 2 * 15.0 / 16 * 0.01);
  EXPECT_DOUBLE_EQ(ring.gather(1e9, 100), 29e-4 + 15.0 / 16 * 0.01);
  const Ring inside(s, 8, 1);
  EXPECT_DOUBLE_EQ(inside.gather(3e9, 1), 19e-6 + 7.0 / 8 * 0.01);
  EXPECT_EQ(Ring(s, 1, 1).all_reduce(1e9, 10), 0);
}

TEST(StepTime, ComputationAloneIsFlopsOverTheReachedRate) {
  // One device, no overheads: 3 forward passes' worth of work at half the peak.
  const Scenario s = scenario(
      {{"engine", {{"efficiency", 0.5}, {"half_tokens", 0}, {"kernel_latency_us", 0}}}, {"noise", {{"imbalance", 0}}}});
  const StepTime t = time_of(zero({{"stage", 0}}), s, 1);
  EXPECT_NEAR(t.backward / t.forward, 2, 1e-9);
  EXPECT_NEAR(t.flops_per_device / (t.forward + t.backward), 0.5 * 312e12, 1e6);
}

TEST(StepTime, ALargerMicroBatchUsesADeviceBetter) {
  const auto rate = [](int samples) {
    const StepTime t = time_of({{"train_micro_batch_size_per_gpu", samples}});
    return t.flops_per_device / t.total;
  };
  EXPECT_LT(1.2 * rate(1), rate(4));
  EXPECT_LT(rate(4), rate(16));
  EXPECT_LT(rate(16) / rate(8), rate(4) / rate(2));
}

TEST(StepTime, RecomputationMakesTheBackwardPassThreeForwardPassesLong) {
  const Scenario s = scenario({{"engine", {{"half_tokens", 0}}}, {"model", {{"checkpointing", "full"}}}});
  const StepTime t = time_of(zero({{"stage", 0}}), s, 1);
  EXPECT_NEAR(t.backward / t.forward, 3, 0.01);
}

TEST(StepTime, SmallBucketsCostLatency) {
  const auto backward = [](double bucket) {
    return time_of(zero({{"stage", 2}, {"reduce_bucket_size", bucket}})).backward;
  };
  EXPECT_GT(backward(1e6), backward(1e8));
  EXPECT_GT(time_of(zero({{"stage", 1}, {"allgather_bucket_size", 1e6}})).step,
            time_of(zero({{"stage", 1}, {"allgather_bucket_size", 5e8}})).step);
}

TEST(StepTime, OverlapHidesAllButTheLastBucket) {
  const auto backward = [](bool overlap, double bucket) {
    return time_of(zero({{"stage", 2}, {"overlap_comm", overlap}, {"reduce_bucket_size", bucket}})).backward;
  };
  EXPECT_LT(backward(true, 1e8), backward(false, 1e8));
  EXPECT_LT(backward(true, 1e8), backward(true, 2e9));  // one bucket: nothing is left to overlap with
}

TEST(StepTime, AccumulationSparesStageOneTheReductionButNotStageTwo) {
  const auto per_micro_step = [](int stage, int accumulation) {
    Json changes = zero({{"stage", stage}, {"overlap_comm", false}});
    changes["gradient_accumulation_steps"] = accumulation;
    return time_of(changes).backward;
  };
  EXPECT_LT(per_micro_step(1, 16), 0.97 * per_micro_step(1, 1));
  EXPECT_DOUBLE_EQ(per_micro_step(2, 16), per_micro_step(2, 1));
}

TEST(StepTime, ReducingEverythingEverywhereCostsTwice) {
  EXPECT_GT(time_of(zero({{"stage", 2}, {"reduce_scatter", false}, {"overlap_comm", false}})).backward,
            time_of(zero({{"stage", 2}, {"reduce_scatter", true}, {"overlap_comm", false}})).backward);
  EXPECT_GT(time_of(zero({{"stage", 1}, {"allgather_partitions", false}})).step,
            time_of(zero({{"stage", 1}, {"allgather_partitions", true}})).step);
}

TEST(StepTime, StageThreePaysForGatheringAndPrefetchingHidesIt) {
  const Json slow{{"cluster", {{"inter_node_bandwidth", 5e9}}}};
  const auto forward = [&](const Json& section) { return time_of(zero(section), scenario(slow)).forward; };
  EXPECT_GT(forward({{"stage", 3}}), forward({{"stage", 2}}));
  EXPECT_LT(forward({{"stage", 3}, {"overlap_comm", true}}), forward({{"stage", 3}, {"overlap_comm", false}}));
  // With room for the whole model nothing is gathered twice.
  const auto backward = [&](double live) {
    const Json section{{"stage", 3}, {"stage3_max_live_parameters", live}, {"stage3_max_reuse_distance", 2 * live}};
    return time_of(zero(section), scenario(slow)).backward;
  };
  EXPECT_LT(backward(1e10), backward(1e9));
}

TEST(StepTime, OffloadingIsPaidForAtTheStep) {
  const Json offloaded{{"stage", 2}, {"offload_optimizer", {{"device", "cpu"}}}};
  EXPECT_GT(time_of(zero(offloaded)).step, 3 * time_of(zero({{"stage", 2}})).step);
}

TEST(StepTime, APipelineIdlesLessWithMoreMicroBatches) {
  const auto busy = [](int accumulation) {
    const StepTime t = time_of({{"pipeline", {{"stages", 4}}}, {"gradient_accumulation_steps", accumulation}});
    return t.flops_per_device / t.total;
  };
  EXPECT_GT(busy(16), 2 * busy(1));
}

// What is reduced after the last micro step is not reduced again in the slots that stand idle.
TEST(StepTime, APipelineReducesOnceAStep) {
  for (const int accumulation : {1, 4}) {
    Json changes = zero({{"stage", 1}});
    changes["pipeline"] = {{"stages", 4}};
    changes["gradient_accumulation_steps"] = accumulation;
    const auto total = [&](double bandwidth) {
      const StepTime t = time_of(changes, scenario({{"cluster", {{"inter_node_bandwidth", bandwidth}}}}));
      return std::pair(t.total - t.step, t.backward * accumulation);
    };
    const auto [slow, slow_backward] = total(1e9);
    const auto [fast, fast_backward] = total(100e9);
    EXPECT_NEAR(slow - fast, slow_backward - fast_backward, 1e-9 * slow) << accumulation;
  }
}

// Hugging Face's Trainer fills them in from the hidden size; no collective for each parameter.
TEST(StepTime, AutoBucketsAreHuggingFaces) {
  const double hidden = static_cast<double>(scenario().model.shape.hidden);
  const StepTime filled = time_of(zero({{"stage", 3},
                                        {"reduce_bucket_size", "auto"},
                                        {"stage3_prefetch_bucket_size", "auto"},
                                        {"stage3_param_persistence_threshold", "auto"}}));
  const StepTime written = time_of(zero({{"stage", 3},
                                         {"reduce_bucket_size", hidden * hidden},
                                         {"stage3_prefetch_bucket_size", 0.9 * hidden * hidden},
                                         {"stage3_param_persistence_threshold", 10 * hidden}}));
  EXPECT_NEAR(filled.total, written.total, 1e-6 * written.total);
  EXPECT_EQ(time_of(zero({{"stage", 2}, {"allgather_bucket_size", "auto"}})).total, time_of(zero({{"stage", 2}})).total)
      << "the Trainer leaves it out, and DeepSpeed has a default";
}

// The paper's example: 7.5e9 parameters on 64 devices need 120, 31.4, 16.6 and 1.9 GB.
TEST(StepMemory, FollowsZeRoForTheModelStates) {
  const Scenario s =
      scenario({{"model", {{"layers", 36}, {"hidden", 4096}, {"heads", 32}, {"seq", 2}, {"vocab", 50257}}},
                {"cluster", {{"nodes", 8}}},
                {"engine", {{"fragmentation", 0}}}});
  const double scale = s.model.num_params / 7.5e9;
  const double expected[] = {120e9, 31.4e9, 16.6e9, 1.9e9};
  for (const int stage : {0, 1, 2, 3}) {
    Json changes = zero({{"stage", stage},
                         {"reduce_bucket_size", 1},
                         {"allgather_bucket_size", 1},
                         {"stage3_prefetch_bucket_size", 1},
                         {"stage3_max_reuse_distance", 1},
                         {"stage3_max_live_parameters", 1}});
    changes["train_micro_batch_size_per_gpu"] = 1;
    changes["bf16"] = nullptr;  // merge_patch takes it out: bf16 has other gradients at stage 0
    changes["fp16"] = {{"enabled", true}};
    // The optimizer's temporary copies and the layer at work come on top.
    const double states = memory_of(changes, s, 64).allocated;
    const double extra = stage == 0 ? 4 * s.model.num_params : stage < 3 ? 4 * s.model.num_params / 64 : 1e9;
    EXPECT_NEAR(states - (stage == 3 ? 0 : extra), expected[stage] * scale, 0.02 * expected[stage] * scale + extra)
        << stage;
  }
}

TEST(StepMemory, GrowsWithTheMicroBatchAndShrinksWithTheStage) {
  const auto bytes = [](int stage, int samples) {
    Json changes = zero({{"stage", stage}, {"reduce_bucket_size", 1e7}});
    changes["train_micro_batch_size_per_gpu"] = samples;
    return memory_of(changes).allocated;
  };
  for (const int stage : {0, 1, 2, 3}) EXPECT_GT(bytes(stage, 8), bytes(stage, 4) + 4e9) << stage;
  EXPECT_GT(bytes(0, 8), bytes(1, 8));
  EXPECT_GT(bytes(1, 8), bytes(2, 8));
  EXPECT_GT(bytes(2, 8), bytes(3, 8));
}

TEST(StepMemory, BucketsTakeMemoryTwiceWithOverlap) {
  const auto bytes = [](double bucket, bool overlap) {
    Json changes = zero({{"stage", 2}, {"reduce_bucket_size", bucket}, {"overlap_comm", overlap}});
    return memory_of(changes).allocated;
  };
  EXPECT_NEAR(bytes(5e8, false) - bytes(1e8, false), 4e8 * 2, 1e7);
  EXPECT_NEAR(bytes(5e8, true) - bytes(1e8, true), 4e8 * 4, 1e7);
}

TEST(StepMemory, ABucketIsWholeWhateverTheModelsSizeAndSingleAtStage3) {
  const auto bytes = [](int stage, double bucket, bool overlap) {
    return memory_of(zero({{"stage", stage}, {"reduce_bucket_size", bucket}, {"overlap_comm", overlap}})).allocated;
  };
  EXPECT_NEAR(bytes(1, 1e11, false) - bytes(1, 5e10, false), 5e10 * 2, 1e7);
  EXPECT_NEAR(bytes(3, 5e8, true), bytes(3, 5e8, false), 1e7);
}

TEST(StepMemory, WhatIsAsLargeAsThePersistenceThresholdStaysWhole) {
  const double hidden = scenario().model.shape.hidden;
  const auto bytes = [](double threshold) {
    return memory_of(zero({{"stage", 3}, {"stage3_param_persistence_threshold", threshold}})).allocated;
  };
  EXPECT_LT(bytes(hidden - 1), bytes(hidden));
  EXPECT_EQ(bytes(hidden), bytes(hidden + 1));
}

TEST(StepMemory, OffloadingAndCheckpointingSaveMemory) {
  EXPECT_LT(memory_of(zero({{"stage", 2}, {"offload_optimizer", {{"device", "cpu"}}}})).allocated,
            memory_of(zero({{"stage", 2}})).allocated);
  const Scenario full = scenario({{"model", {{"checkpointing", "full"}}}});
  EXPECT_LT(memory_of(Json::object(), full).activations, 0.2 * memory_of(Json::object()).activations);
}

TEST(StepMemory, WithoutContiguousGradientsThereIsNoBucketAtStage3Either) {
  const auto allocated = [](bool contiguous) {
    return memory_of(zero({{"stage", 3}, {"contiguous_gradients", contiguous}, {"reduce_bucket_size", 5e9}})).allocated;
  };
  EXPECT_LT(allocated(false), allocated(true) - 5e9);
}

TEST(StepMemory, TheLayerThatIsComputedAgainIsHeldWhole) {
  const auto activations = [](const char* checkpointing) {
    const Scenario of_one_layer = scenario({{"model", {{"layers", 1}, {"checkpointing", checkpointing}}}});
    return memory_of(Json::object(), of_one_layer).activations;
  };
  EXPECT_GT(activations("full"), activations("none")) << "its input is kept besides";
}

TEST(StepMemory, FragmentsAreAShareOfWhatIsAllocated) {
  const auto memory = [](double fragmentation) {
    return memory_of(zero({{"stage", 0}}), scenario({{"engine", {{"fragmentation", fragmentation}}}}));
  };
  const Memory whole = memory(0), in_fragments = memory(0.1);
  EXPECT_EQ(in_fragments.allocated, whole.allocated);
  EXPECT_NEAR(in_fragments.reserved - whole.reserved, 0.1 * whole.allocated, 4e6) << "to a block of the allocator";
}

TEST(StepMemory, WithoutContiguousGradientsMoreIsLostToFragments) {
  const Memory together = memory_of(zero({{"stage", 2}, {"contiguous_gradients", true}}));
  const Memory apart = memory_of(zero({{"stage", 2}, {"contiguous_gradients", false}}));
  EXPECT_GT(apart.reserved - apart.allocated, together.reserved - together.allocated);
}

}  // namespace
}  // namespace dsat::host::sim
