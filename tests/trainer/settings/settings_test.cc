// What a DeepSpeed configuration becomes: obeyed, warned of, or refused.
// Every error and warning names the key.
#include "settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SettingsResult read(const char* text, int64_t world_size = 2) { return read_settings(Json::parse(text), world_size); }

std::string error_of(const char* text, int64_t world_size = 2) {
  return dsat::error_of([&] { read(text, world_size); });
}

TEST(SettingsTest, StageThreesLimitsAreReadInBothSpellings) {
  const Settings none = read(R"({"zero_optimization": {"stage": 3}})").settings;
  EXPECT_EQ(none.prefetch_bucket, 0);
  EXPECT_EQ(none.persistence_threshold, 0);
  EXPECT_EQ(none.max_live_parameters, 0);
  EXPECT_EQ(none.max_reuse_distance, -1);
  const Settings given = read(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5e3,
      "param_persistence_threshold": 7, "stage3_max_live_parameters": 1e9, "max_reuse_distance": 0,
      "offload_param": {"device": "cpu"}}})")
                             .settings;
  EXPECT_EQ(given.prefetch_bucket, 5000);
  EXPECT_EQ(given.persistence_threshold, 7);
  EXPECT_EQ(given.max_live_parameters, 1000000000);
  EXPECT_EQ(given.max_reuse_distance, 0);
  EXPECT_TRUE(given.offload_param);
  // Without effect at other stages, as in DeepSpeed.
  EXPECT_EQ(read(R"({"zero_optimization": {"stage": 2, "stage3_prefetch_bucket_size": 5}})").settings.prefetch_bucket,
            0);
}

TEST(SettingsTest, AnEmptyConfigurationHasDeepSpeedsDefaults) {
  const SettingsResult result = read("{}");
  const Settings& s = result.settings;
  EXPECT_EQ(s.stage, 0);
  EXPECT_EQ(s.batch.micro_batch, 1);
  EXPECT_EQ(s.batch.train_batch, 2);
  EXPECT_EQ(s.reduce_bucket, 500000000);
  EXPECT_FALSE(s.tuning.enabled);
  EXPECT_EQ(s.optimizer.kind, OptimizerSettings::Kind::adam);
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(SettingsTest, ReadsWhatItObeys) {
  const Settings s = read(R"({
    "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4, "gradient_clipping": 0.5,
    "bf16": {"enabled": true},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e6, "allgather_bucket_size": 1000,
                          "overlap_comm": true, "reduce_scatter": false},
    "optimizer": {"type": "AdamW", "params": {"lr": 0.1, "betas": [0.8, 0.9], "eps": 1e-6, "weight_decay": 0.2}},
    "autotuning": {"enabled": true, "metric_path": "m", "start_profile_step": 1, "end_profile_step": 2}})")
                         .settings;
  EXPECT_EQ(s.batch.train_batch, 24);
  EXPECT_EQ(s.gradient_clipping, 0.5);
  EXPECT_TRUE(s.bf16);
  EXPECT_EQ(s.stage, 2);
  EXPECT_EQ(s.reduce_bucket, 5000000);
  EXPECT_EQ(s.allgather_bucket, 1000);
  EXPECT_TRUE(s.overlap_comm);
  EXPECT_FALSE(s.reduce_scatter);
  EXPECT_EQ(s.optimizer.lr, 0.1);
  EXPECT_EQ(s.optimizer.beta1, 0.8);
  EXPECT_EQ(s.optimizer.beta2, 0.9);
  EXPECT_EQ(s.optimizer.weight_decay, 0.2);
  EXPECT_TRUE(s.tuning.enabled);
  EXPECT_EQ(s.tuning.metric_path, "m");
  EXPECT_EQ(s.tuning.end_profile_step, 2);
}

TEST(SettingsTest, ValuesThatDeepSpeedConvertsAreTaken) {
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 2, "overlap_comm": 1}})").settings.overlap_comm);
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 3, "overlap_comm": "no"}})").settings.overlap_comm);
  EXPECT_EQ(read(R"({"zero_optimization": {"stage": 3, "prefetch_bucket_size": "7"}})").settings.prefetch_bucket, 7);
}

TEST(SettingsTest, ABucketIsALayerWhereItTakesMemoryOfItsOwn) {
  const auto bucket = [](const char* zero) {
    const std::string text = R"({"zero_optimization": )" + std::string(zero) + "}";
    return read(text.c_str()).settings.reduce_bucket;
  };
  EXPECT_EQ(bucket(R"({"stage": 1})"), 500000000);
  EXPECT_EQ(bucket(R"({"stage": 2})"), 0);
  EXPECT_EQ(bucket(R"({"stage": 3, "reduce_bucket_size": "auto"})"), 0);
  EXPECT_EQ(bucket(R"({"stage": 3, "reduce_bucket_size": 5e8})"), 500000000);
}

TEST(SettingsTest, CommunicationOverlapsByDefaultAtStageThreeOnly) {
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 2}})").settings.overlap_comm);
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 3}})").settings.overlap_comm);
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 3, "overlap_comm": false}})").settings.overlap_comm);
}

TEST(SettingsTest, AdamIsAdamWByDefault) {
  EXPECT_TRUE(read(R"({"optimizer": {"type": "Adam"}})").settings.optimizer.decoupled_weight_decay);
  EXPECT_FALSE(read(R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})")
                   .settings.optimizer.decoupled_weight_decay);
}

TEST(SettingsTest, PyTorchsAdamWHasItsOwnWeightDecay) {
  const auto decay = [](const std::string& params) {
    return read((R"({"optimizer": {"type": "AdamW", "params": {)" + params + "}}}").c_str())
        .settings.optimizer.weight_decay;
  };
  EXPECT_EQ(decay(R"("torch_adam": true)"), 0.01);
  EXPECT_EQ(decay(R"("torch_adam": true, "weight_decay": 0)"), 0);
  EXPECT_EQ(decay(""), 0) << "DeepSpeed's own has none";
}

TEST(SettingsTest, ReadsASchedule) {
  const ScheduleSettings s = read(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0.1,
    "warmup_max_lr": 0.2, "warmup_num_steps": 7, "warmup_type": "linear", "total_num_steps": 70}}})")
                                 .settings.schedule;
  EXPECT_EQ(s.kind, ScheduleSettings::Kind::warmup_decay);
  EXPECT_EQ(s.min_lr, 0.1);
  EXPECT_EQ(s.max_lr, 0.2);
  EXPECT_EQ(s.warmup_steps, 7);
  EXPECT_FALSE(s.logarithmic);
  EXPECT_EQ(s.total_steps, 70);
}

TEST(SettingsTest, ReadsTheOtherSchedules) {
  const auto schedule = [](const std::string& scheduler) {
    return read(("{\"scheduler\": " + scheduler + "}").c_str()).settings.schedule;
  };
  const ScheduleSettings cosine = schedule(
      R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_min_ratio": 0.1, "cos_min_ratio": 0.2}})");
  EXPECT_EQ(cosine.kind, ScheduleSettings::Kind::warmup_cosine);
  EXPECT_EQ(cosine.min_ratio, 0.1);
  EXPECT_EQ(cosine.end_ratio, 0.2);
  const ScheduleSettings cycle = schedule(R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2,
    "cycle_first_step_size": 30, "cycle_first_stair_count": 3, "cycle_min_mom": 0.5}})");
  EXPECT_EQ(cycle.cycle.second_size, 30);
  EXPECT_EQ(cycle.cycle.second_stairs, 3);
  EXPECT_EQ(cycle.cycle.min_momentum, 0.5);
  EXPECT_TRUE(cycle.cycle.moves_momentum);
  const ScheduleSettings test =
      schedule(R"({"type": "LRRangeTest", "params": {"lr_range_test_step_size": 5, "lr_range_test_staircase": true}})");
  EXPECT_EQ(test.step_size, 5);
  EXPECT_TRUE(test.is_staircase);
}

// "auto" is the optimizer's rate. An absent key is that rate too for WarmupLR, and a number for WarmupDecayLR.
TEST(SettingsTest, AScheduleRisesToTheOptimizersRateByDefault) {
  const auto highest = [](const std::string& scheduler) {
    const std::string optimizer = R"("optimizer": {"type": "Adam", "params": {"lr": 0.5}})";
    const std::string text = "{" + optimizer + ", \"scheduler\": " + scheduler + "}";
    return read(text.c_str()).settings.schedule.max_lr;
  };
  EXPECT_EQ(highest(R"({"type": "WarmupLR", "params": {"warmup_max_lr": "auto"}})"), 0.5);
  EXPECT_EQ(highest(R"({"type": "WarmupLR"})"), 0.5);
  EXPECT_EQ(highest(R"({"type": "WarmupLR", "params": {"warmup_num_steps": 7}})"), 0.5);
  EXPECT_EQ(highest(R"({"type": "WarmupDecayLR", "params": {"total_num_steps": 70}})"), 0.001);
}

TEST(SettingsTest, HalfPrecisionMayRunInBf16) {
  const Json config = Json::parse(R"({"fp16": {"enabled": true, "initial_scale_power": 8, "loss_scale_window": 5,
    "hysteresis": 3, "min_loss_scale": 0.5}})");
  const Settings s = read_settings(config, 1, Fp16::in_bf16).settings;
  EXPECT_TRUE(s.bf16);
  EXPECT_EQ(s.precision(), "bf16 in place of fp16");
  EXPECT_TRUE(s.loss_scale.enabled);
  EXPECT_EQ(s.loss_scale.initial_power, 8);
  EXPECT_EQ(s.loss_scale.window, 5);
  EXPECT_EQ(s.loss_scale.hysteresis, 3);
  EXPECT_EQ(s.loss_scale.min_scale, 0.5);
  EXPECT_EQ(read(R"({"bf16": {"enabled": true}})").settings.precision(), "bf16");
  EXPECT_EQ(read("{}").settings.precision(), "fp32");
}

TEST(SettingsTest, OffloadsTheOptimizerInEitherForm) {
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})").settings.offload_optimizer);
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu", "pin_memory": true}}})")
                  .settings.offload_optimizer);
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 2}})").settings.offload_optimizer);
}

TEST(SettingsTest, AutoIsAsIfAbsent) {
  const Settings s = read(R"({"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto",
    "optimizer": {"type": "Adam", "params": {"lr": "auto"}}, "zero_optimization": {"reduce_bucket_size": "auto"}})")
                         .settings;
  EXPECT_EQ(s.optimizer.lr, 1e-3);
  EXPECT_EQ(s.reduce_bucket, 500000000);
}

TEST(SettingsTest, RefusesAnotherTraining) {
  EXPECT_THAT(error_of(R"({"fp16": {"enabled": true}})"),
              AllOf(HasSubstr("use bf16.enabled"), HasSubstr("--fp16-as-bf16")));
  EXPECT_THAT(error_of(R"({"amp": {"enabled": true}})"), HasSubstr("amp.enabled"));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})"),
              HasSubstr("zero_optimization.offload_optimizer.device is \"nvme\": "));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})"),
              HasSubstr("all or nothing"));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}})"),
              HasSubstr("optimizer offload"));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})"),
              HasSubstr("zero_optimization.offload_param.device is \"nvme\": "));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})"),
              HasSubstr("stage"));
  EXPECT_THAT(error_of(R"({"pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}})"),
              HasSubstr("pipeline parallelism"));
  EXPECT_THAT(error_of(R"({"tensor_parallel": {"autotp_size": 2}})"), HasSubstr("no tensor parallelism"));
  EXPECT_THAT(error_of(R"({"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": true}})"),
              HasSubstr("grad_accum_dtype"));
  EXPECT_THAT(error_of(R"({"optimizer": {"type": "Lion"}})"), HasSubstr("SGD and Lamb"));
  EXPECT_EQ(error_of(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}},
                         "fp16": {"enabled": false}, "pipeline": {"stages": 1}})"),
            "no error");
}

TEST(SettingsTest, PipelinesShareTheRanksOut) {
  const Settings s = read(R"({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4,
      "pipeline": {"stages": 2, "partition": "uniform", "activation_checkpoint_interval": 3}})")
                         .settings;
  EXPECT_EQ(s.batch.train_batch, 12);
  EXPECT_EQ(s.pipeline.stages, 2);
  EXPECT_EQ(s.pipeline.partition, PartitionMethod::uniform);
  EXPECT_EQ(s.pipeline.checkpoint_interval, 3);
  EXPECT_THAT(error_of(R"({"pipeline": {"stages": 3}})"), HasSubstr("the 2 ranks"));
  EXPECT_THAT(error_of(R"({"pipeline": {"partition": "type:Linear"}})"), HasSubstr("\"parameters\" and \"uniform\""));
  EXPECT_EQ(error_of(R"({"pipeline": {"stages": "auto", "partition": "best"}})"), "no error");
}

TEST(SettingsTest, TheCommandLineMayNameThePipelineStagesOnce) {
  Json config = Json::parse(R"({"pipeline": {"stages": "auto"}})");
  set_pipeline_stages(config, 2, "--pipeline-stages");
  EXPECT_EQ(config["pipeline"]["stages"], 2);
  EXPECT_NO_THROW(set_pipeline_stages(config, 2, "--pipeline-stages"));
  EXPECT_THROW(set_pipeline_stages(config, 4, "--pipeline-stages"), Error);
}

TEST(SettingsTest, RefusesBadValues) {
  EXPECT_THAT(error_of("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 4,
                           "gradient_accumulation_steps": 2})"),
              HasSubstr("train_batch_size"));
  EXPECT_THAT(error_of(R"({"optimizer": {"type": "Adam", "params": {"lr": "fast"}}})"),
              HasSubstr("optimizer.params.lr is \"fast\"; "));
  EXPECT_THAT(error_of(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9]}}})"), HasSubstr("betas"));
  EXPECT_THAT(error_of(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9, 1.0]}}})"), HasSubstr("betas"));
  EXPECT_THAT(error_of(R"({"optimizer": {"type": "SGD", "params": {"nesterov": true}}})"), HasSubstr("momentum"));
  EXPECT_THAT(error_of(R"({"optimizer": {"type": "Lamb", "params": {"min_coeff": 2, "max_coeff": 1}}})"),
              HasSubstr("min_coeff is above"));
  EXPECT_THAT(error_of(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}}})"),
              HasSubstr("warmup_type is \"cubic\"; "));
  EXPECT_THAT(error_of(R"({"scheduler": {"type": "WarmupDecayLR", "params": {}}})"), HasSubstr("total_num_steps"));
  EXPECT_THAT(error_of(R"({"scheduler": {"type": "WarmupCosineLR", "params": {}}})"), HasSubstr("total_num_steps"));
  EXPECT_THAT(error_of(R"({"scheduler": {"type": "OneCycle", "params": {"cycle_max_lr": 1}}})"),
              HasSubstr("cycle_min_lr is missing"));
  EXPECT_THAT(error_of(R"({"scheduler": {"type": "StepLR"}})"), HasSubstr("\"StepLR\"; dsat-trial has LRRangeTest"));
  EXPECT_THAT(error_of(R"({"gradient_clipping": -1})"), HasSubstr("gradient_clipping is -1"));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"overlap_comm": "maybe"}})"), HasSubstr("true or false"));
  EXPECT_THAT(error_of(R"({"zero_optimization": {"reduce_bucket_size": "big"}})"), HasSubstr("reduce_bucket_size"));
  EXPECT_THAT(error_of(R"({"activation_checkpointing": {"number_checkpoints": -1}})"), HasSubstr("number_checkpoints"));
  EXPECT_THAT(error_of(R"({"autotuning": {"enabled": true, "start_profile_step": 5, "end_profile_step": 2}})"),
              HasSubstr("end_profile_step 2"));
}

// DeepSpeed looks at fp16's numbers only where fp16 is on.
TEST(SettingsTest, NumbersOfASectionThatIsOffAreNotLookedAt) {
  Json config = Json::parse(R"({"fp16": {"enabled": false, "min_loss_scale": -1}})");
  EXPECT_FALSE(read_settings(config, 1, Fp16::in_bf16).settings.loss_scale.enabled);
  config["fp16"]["enabled"] = true;
  EXPECT_THAT(dsat::error_of([&] { read_settings(config, 1, Fp16::in_bf16); }), HasSubstr("min_loss_scale is -1"));
}

TEST(SettingsTest, WarnsOfWhatHasNoEffect) {
  EXPECT_THAT(read(R"({"scheduler": {"params": {}}, "steps_per_print": 5, "my_key": 1,
                       "zero_optimization": {"stage": 1, "magic": true, "contiguous_gradients": true,
                                             "zero_quantized_weights": "yes", "use_all_reduce_for_fetch_params": true},
                       "optimizer": {"type": "Adam", "params": {"lr": 1, "amsgrad": true}},
                       "activation_checkpointing": {"partition_activations": true, "profile": true}})")
                  .warnings,
              ElementsAre(HasSubstr("zero_quantized_weights"), HasSubstr("partition_activations"), HasSubstr("my_key"),
                          HasSubstr("zero_optimization.magic"), HasSubstr("zero_optimization.use_all_reduce"),
                          HasSubstr("scheduler has no type"), HasSubstr("optimizer.params.amsgrad")));
}

// A typing mistake within a section costs a run as one at the top does.
TEST(SettingsTest, SuggestsTheKeyThatWasMeant) {
  EXPECT_THAT(read(R"({"gradient_cliping": 1, "zero_optimization": {"stage": 1, "reduce_bucket_sice": 5}})").warnings,
              ElementsAre(HasSubstr("did you mean 'gradient_clipping'?"),
                          HasSubstr("did you mean 'zero_optimization.reduce_bucket_size'?")));
}

TEST(SettingsTest, WarnsOfUnknownKeysWithinSections) {
  EXPECT_THAT(read(R"({"bf16": {"enable": true}, "data_types": {"grad_acc_dtype": "bf16"},
                       "autotuning": {"start_profile_stp": 0}})")
                  .warnings,
              ::testing::IsSupersetOf({HasSubstr("bf16.enable: unknown"), HasSubstr("data_types.grad_acc_dtype"),
                                       HasSubstr("autotuning.start_profile_stp")}));
}

TEST(SettingsTest, WhatDeepSpeedTakesForNoneOrForAllIsTaken) {
  EXPECT_EQ(read(R"({"activation_checkpointing": {"number_checkpoints": false}})").settings.number_checkpoints, 0);
  EXPECT_EQ(read(R"({"activation_checkpointing": {"number_checkpoints": 0}})").settings.number_checkpoints, 0);
  const Settings s = read(R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": 1e16,
                              "stage3_model_persistence_threshold": 9223372036854775807}})")
                         .settings;
  EXPECT_EQ(s.model_persistence_threshold, int64_t{1} << 50);
  EXPECT_EQ(s.reduce_bucket, int64_t{1} << 50);
}

TEST(SettingsTest, EverySpellingOfTensorParallelismIsRefused) {
  for (const char* spelling : {R"({"tensor_parallel": {"tp": {"tp_size": 2}}})", R"({"mp_size": 2})",
                               R"({"tensor_parallel": {"autotp_size": 2}})"}) {
    EXPECT_THAT(error_of(spelling), HasSubstr("no tensor parallelism")) << spelling;
  }
  EXPECT_THAT(error_of(R"({"sequence_parallel_size": 2})"), HasSubstr("no sequence parallelism"));
}

TEST(SettingsTest, GradientsInTheParametersOwnTypeNeedNoZero) {
  EXPECT_EQ(error_of(R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"}})"), "no error");
}

TEST(SettingsTest, AConfigurationMayBeBase64) {
  // {"train_batch_size": 4}
  EXPECT_EQ(load_configuration("eyJ0cmFpbl9iYXRjaF9zaXplIjogNH0=").at("train_batch_size"), 4);
  EXPECT_THROW(load_configuration("no_such_file.json"), Error);
  EXPECT_THROW(load_configuration("abcd"), Error);
}

}  // namespace
}  // namespace dsat::trainer
