// The engine on a device that is not the CPU: what ranks train there is what they train on the CPU.
// The device is the test's own (fake_device.h); what only CUDA has is not tested here.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <ostream>

#include "device/offload_memory.h"
#include "dsat/trainer/engine.h"
#include "dsat/trainer/pipeline.h"
#include "fake_device.h"
#include "model/layer_chain.h"
#include "model/model_module.h"
#include "support/temp_dir.h"
#include "trainer/on_ranks.h"
#include "zero/zero_context.h"

namespace dsat::trainer {
namespace {

constexpr int kSteps = 3;
constexpr int64_t kSamples = 2;

ModelOptions small(ModelKind kind) {
  ModelOptions options;
  options.kind = kind;
  options.layers = 2;
  options.hidden = 16;
  options.heads = 2;
  options.seq = 8;
  options.vocab = 32;
  options.depth = 8;
  options.image = 8;
  return options;
}

struct Case {
  const char* name;
  int ranks;
  ModelKind model;
  const char* config;  // beside the batch
  bool recomputes = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Json config_of(const Case& c) {
  Json config = Json::parse(c.config);
  config["train_micro_batch_size_per_gpu"] = kSamples;
  if (!config.contains("optimizer")) {
    config["optimizer"] = {{"type", "Adam"}, {"params", {{"lr", 0.01}, {"weight_decay", 0.01}}}};
  }
  return config;
}

bool is_pipeline(const Json& config) { return config.contains("pipeline"); }

World world_on(at::Device device, Comm& comm, const Json& config) {
  std::vector<int> all;
  for (int rank = 0; rank < comm.size(); ++rank) all.push_back(rank);
  return World(through_host_memory(comm.split(all)), WorldOptions(), config, device);
}

Batch batch_of(const Model& model, int64_t number, at::Device device) {
  const Batch batch = model.batch(RandomStream(7, static_cast<uint64_t>(number)), kSamples);
  return {batch.input.to(device), batch.target.to(device)};
}

at::ScalarType dtype_in(const Json& config) {
  if (config.contains("fp16")) return at::kHalf;
  return config.contains("bf16") ? at::kBFloat16 : at::kFloat;
}

std::unique_ptr<Engine<ModelModule>> engine_on(World& world, const Case& c) {
  auto model = make_model(small(c.model), dtype_in(world.config()), world.device());
  const Segments segments = c.recomputes ? segments_of(model->layers().size(), 0) : Segments();
  return initialize(std::make_shared<ModelModule>(std::move(model), segments), world, world.config());
}

double step_of(Engine<ModelModule>& engine) {
  World& world = engine.world();
  double sum = 0;
  for (int64_t i = 0; i < engine.gradient_accumulation_steps(); ++i) {
    const int64_t number = engine.micro_steps() * world.size() + world.rank();
    const at::Tensor loss = engine.forward(batch_of(engine.module().model(), number, world.device()));
    sum += loss.item<double>();
    engine.backward(loss);
    engine.step();
  }
  return sum_over_ranks(world.comm(), {sum})[0];
}

std::vector<double> losses_of_whole(World& world, const Case& c) {
  const auto engine = engine_on(world, c);
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) losses.push_back(step_of(*engine));
  return losses;
}

std::vector<double> losses_of_pipeline(World& world, const Case& c) {
  const auto model = make_model(small(c.model), dtype_in(world.config()), world.device());
  PipelineEngine engine(chain_of(*model), world, world.config(), c.recomputes);
  int64_t number = 0;
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    losses.push_back(engine.train_batch([&] {
      const Batch batch = batch_of(*model, number++, world.device());
      return Tensors{batch.input, batch.target};
    }));
  }
  return losses;
}

std::vector<double> losses_on(at::Device device, Comm& comm, const Case& c) {
  World world = world_on(device, comm, config_of(c));
  return is_pipeline(world.config()) ? losses_of_pipeline(world, c) : losses_of_whole(world, c);
}

// What is wrong, or nothing.
std::string compare(const std::vector<double>& losses, const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(losses[i] - expected[i]) <= tolerance * expected[i]) continue;
    return "step " + std::to_string(i) + ": loss " + std::to_string(losses[i]) + ", on the CPU " +
           std::to_string(expected[i]);
  }
  if (expected.front() == expected.back()) return "the losses do not tell whether the model learns";
  return "";
}

class Device : public ::testing::TestWithParam<Case> {};

TEST_P(Device, TrainsAsTheCpuDoes) {
  const RankResult result = on_ranks(GetParam().ranks, [](Comm& comm) {
    const std::vector<double> expected = losses_on(at::kCPU, comm, GetParam());
    const std::vector<double> losses = losses_on(open_fake_device(), comm, GetParam());
    return compare(losses, expected, dtype_in(config_of(GetParam())) == at::kFloat ? 1e-5 : 5e-3);
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Device,
    ::testing::Values(
        Case{"alone", 1, ModelKind::gpt, R"({"gradient_clipping": 0.5})"},
        Case{"alone_stage_3_recomputed", 1, ModelKind::gpt, R"({"zero_optimization": {"stage": 3}})", true},
        Case{"stage_0_overlap", 2, ModelKind::gpt,
             R"({"zero_optimization": {"stage": 0, "overlap_comm": true, "reduce_bucket_size": 1000}})"},
        Case{"stage_1_accumulation", 2, ModelKind::gpt,
             R"({"gradient_accumulation_steps": 2, "gradient_clipping": 0.5,
                 "zero_optimization": {"stage": 1, "allgather_partitions": false}})"},
        Case{"stage_1_offload", 2, ModelKind::gpt,
             R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}})"},
        Case{"stage_2_overlap_recomputed", 2, ModelKind::gpt,
             R"({"zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 1000}})", true},
        Case{"stage_2_offload_lamb", 2, ModelKind::mlp,
             R"({"optimizer": {"type": "Lamb"}, "gradient_accumulation_steps": 2,
                 "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"},
        Case{"stage_2_lamb", 2, ModelKind::mlp,
             R"({"optimizer": {"type": "Lamb"}, "zero_optimization": {"stage": 2}})"},
        Case{"stage_2_resnet_sgd", 2, ModelKind::resnet,
             R"({"optimizer": {"type": "SGD", "params": {"lr": 0.05, "momentum": 0.9}},
                 "zero_optimization": {"stage": 2}})"},
        Case{"stage_3_prefetch", 2, ModelKind::gpt,
             R"({"gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3, "overlap_comm": true,
                 "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 20}})"},
        Case{"stage_3_offload", 2, ModelKind::gpt,
             R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"},
                 "offload_optimizer": {"device": "cpu"}}})"},
        Case{"stage_3_offload_param", 2, ModelKind::gpt,
             R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})"},
        Case{"stage_0_bf16", 2, ModelKind::gpt, R"({"bf16": {"enabled": true}})"},
        Case{"stage_2_bf16_overlap", 2, ModelKind::gpt,
             R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2, "overlap_comm": true}})"},
        Case{"stage_3_bf16_offload", 2, ModelKind::gpt,
             R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "overlap_comm": true,
                 "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}}})"},
        Case{"pipeline", 2, ModelKind::gpt,
             R"({"gradient_accumulation_steps": 3, "gradient_clipping": 0.5, "pipeline": {"stages": 2}})", true},
        Case{"pipeline_stage_1_bf16", 4, ModelKind::gpt,
             R"({"gradient_accumulation_steps": 2, "bf16": {"enabled": true}, "pipeline": {"stages": 2},
                 "zero_optimization": {"stage": 1}})"}),
    [](const auto& info) { return info.param.name; });

// The fake device computes what the CPU does: fp16 from LibTorch 2 on.
#if DSAT_LIBTORCH_MAJOR >= 2
TEST(DeviceFp16, TrainsWithALossScaleAndAnFp32Master) {
  for (const char* const zero :
       {R"({"stage": 0})", R"({"stage": 1, "offload_optimizer": {"device": "cpu"}})",
        R"({"stage": 2, "offload_optimizer": {"device": "cpu"}})", R"({"stage": 3, "overlap_comm": true})"}) {
    const RankResult result = on_ranks(2, [zero](Comm& comm) {
      const std::string section = std::string(R"({"zero_optimization": )") + zero;
      const std::string in_fp32 = section + "}", in_fp16 = section + R"(, "fp16": {"enabled": true}})";
      const std::vector<double> expected = losses_on(at::kCPU, comm, {"", 2, ModelKind::gpt, in_fp32.c_str()});
      const Case half{"", 2, ModelKind::gpt, in_fp16.c_str()};
      World world = world_on(open_fake_device(), comm, config_of(half));
      const auto engine = engine_on(world, half);
      std::vector<double> losses;
      while (engine->skipped_steps() == engine->global_steps() && losses.size() < 40) losses = {step_of(*engine)};
      for (int step = 1; step < kSteps; ++step) losses.push_back(step_of(*engine));
      if (engine->loss_scale() < 2) return std::string("the loss is not scaled");
      return compare(losses, expected, 1e-2);
    });
    EXPECT_EQ(result.kind, FailureKind::none) << zero << ": " << result.message;
  }
}

// 65,504 is fp16's largest number. The scale begins at 65,536, which overflows as the gradient of a loss in fp16: steps
// are skipped until the scaler has found one that fits.
TEST(DeviceFp16, ALossInFp16IsScaledToo) {
  struct Weighted : torch::nn::Module {
    at::Tensor weight = register_parameter("weight", at::ones({4}));
    at::Tensor forward(const at::Tensor& x) { return (weight * x).sum(); }
  };
  const RankResult result = on_ranks(1, [](Comm& comm) -> std::string {
    const Json config{{"train_micro_batch_size_per_gpu", 1}, {"fp16", {{"enabled", true}}}};
    World world = world_on(open_fake_device(), comm, config);
    const auto engine = initialize(std::make_shared<Weighted>(), world, config);
    for (int step = 0; step < 6; ++step) {
      const at::Tensor x = at::full({4}, 1e-3, at::TensorOptions().dtype(engine->dtype())).to(world.device());
      const at::Tensor loss = engine->forward(x);
      if (loss.scalar_type() != at::kHalf) return "the loss is no fp16";
      engine->backward(loss);
      engine->step();
    }
    if (engine->loss_scale() != 32768) return "the loss scale is " + std::to_string(engine->loss_scale());
    return engine->module().weight[0].item<double>() < 1 ? "" : "nothing was learnt";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}
#endif

TEST(DeviceCheckpoint, LoadsOnAnotherDeviceAndStage) {
  const TempDir dir;
  const std::string folder = (dir.path() / "checkpoints").string();
  const RankResult result = on_ranks(2, [&](Comm& comm) {
    const Case from{"", 2, ModelKind::gpt, R"({"zero_optimization": {"stage": 2}})"};
    const Case to{"", 2, ModelKind::gpt, R"({"zero_optimization": {"stage": 3}})"};
    const at::Device device = open_fake_device();
    std::vector<double> expected, on_cpu, on_device;
    {
      World world = world_on(device, comm, config_of(from));
      const auto engine = engine_on(world, from);
      step_of(*engine);
      engine->save_checkpoint(folder, "first");
      for (int i = 0; i < 2; ++i) expected.push_back(step_of(*engine));
    }
    for (const at::Device other : {at::Device(at::kCPU), device}) {
      World world = world_on(other, comm, config_of(to));
      const auto engine = engine_on(world, to);
      engine->load_checkpoint(folder);
      for (int i = 0; i < 2; ++i) (other.is_cpu() ? on_cpu : on_device).push_back(step_of(*engine));
    }
    const std::string wrong = compare(on_cpu, expected, 1e-5);
    return wrong.empty() ? compare(on_device, expected, 1e-5) : wrong;
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// With overlap the communication thread has a queue of its own, ordered with the engine's in both directions.
TEST(DeviceQueues, ArePutInOrderWhereCommunicationRunsBeside) {
  const auto events_with = [](const char* zero) {
    return on_ranks(2, [zero](Comm& comm) -> std::string {
      const Case c{"", 2, ModelKind::gpt, zero};
      const at::Device device = open_fake_device();
      World world = world_on(device, comm, config_of(c));
      step_of(*engine_on(world, c));
      const int64_t buckets = fake_device_events() / 4;  // two records and two waits each
      return "buckets: " + std::to_string(buckets);
    });
  };
  // 8,768 parameters.
  EXPECT_EQ(events_with(R"({"zero_optimization": {"stage": 0, "overlap_comm": false}})").message, "buckets: 0");
  EXPECT_EQ(
      events_with(R"({"zero_optimization": {"stage": 0, "overlap_comm": true, "reduce_bucket_size": 3000}})").message,
      "buckets: 3");
}

// Offloaded states are the host's: between steps the device holds parameters alone.
TEST(DeviceMemory, HoldsWhatIsNotOffloaded) {
  const RankResult result = on_ranks(1, [](Comm& comm) -> std::string {
    const Case c{"", 1, ModelKind::mlp,
                 R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"};
    World world = world_on(open_fake_device(), comm, config_of(c));
    const auto engine = engine_on(world, c);
    step_of(*engine);
    const int64_t parameters = 4 * engine->num_params(), on_device = fake_device_bytes_in_use();
    if (on_device != parameters) return "on the device: " + std::to_string(on_device) + " bytes";
    // Master copy, two moments and the gradient.
    const auto on_host = static_cast<int64_t>(host_memory_in_use());
    return on_host == 4 * parameters ? "" : "on the host: " + std::to_string(on_host) + " bytes";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

}  // namespace
}  // namespace dsat::trainer
