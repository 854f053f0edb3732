// Keys that DeepSpeed would ignore, and the name that was probably meant.
#include "../../sdk/config/src/known_keys.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<UnknownKey> unknown(const char* text) { return unknown_keys(parse(text, "test")); }

// The suggestion for the only unknown key.
std::string suggestion(const char* text) {
  const std::vector<UnknownKey> keys = unknown(text);
  EXPECT_EQ(keys.size(), 1u) << text;
  return keys.empty() ? "nothing unknown" : keys.front().suggestion;
}

TEST(UnknownKeys, AnOrdinaryConfigurationHasNone) {
  EXPECT_THAT(unknown(R"({
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "gradient_clipping": 1.0, "steps_per_print": 10, "wall_clock_breakdown": false,
    "zero_allow_untested_optimizer": true,
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16, "hysteresis": 2,
             "min_loss_scale": 1},
    "bf16": {"enabled": "auto"}, "bfloat16": {"enabled": false},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.999], "my_own": 1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0}},
    "zero_optimization": {"stage": 3, "overlap_comm": true, "contiguous_gradients": true, "reduce_bucket_size": 5e8,
      "offload_param": {"device": "cpu", "pin_memory": true},
      "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme", "pipeline_read": true, "ratio": 0.3},
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto", "sub_group_size": 1e9,
      "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9,
      "stage3_gather_16bit_weights_on_model_save": true, "zero_hpz_partition_size": 8},
    "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": false},
    "flops_profiler": {"enabled": true, "profile_step": 1},
    "comms_logger": {"enabled": true, "prof_ops": ["all_reduce"]},
    "autotuning": {"enabled": true, "fast": false, "metric": "throughput", "arg_mappings": {"any": "--thing"}},
    "tensorboard": {"enabled": true}, "wandb": {"project": "x"}, "csv_monitor": {"enabled": true},
    "aio": {"block_size": 262144}, "data_types": {"grad_accum_dtype": "fp32"}, "pipeline": {"stages": "auto"},
    "tensor_parallel": {"autotp_size": 4}, "elasticity": {"micro_batch_sizes": [2, 4]}, "amp": {"opt_level": "O1"},
    "compression_training": {"whatever": {"x": [1]}}, "data_efficiency": {"seed": 1},
    "checkpoint": {"load_universal": 1},
    "timers": {"throughput": {"enabled": true}}, "nebula": {"enabled": false}, "sparse_attention": {"mode": "fixed"}
  })"),
              IsEmpty());
}

TEST(UnknownKeys, SuggestsTheNearestKeyOfTheSameSection) {
  EXPECT_EQ(suggestion(R"({"train_batchsize": 8})"), "train_batch_size");
  EXPECT_EQ(suggestion(R"({"zero_optimisation": {"stage": 1}})"), "zero_optimization");
  EXPECT_EQ(suggestion(R"({"zero_optimization": {"stgae": 1}})"), "zero_optimization.stage");
  EXPECT_EQ(suggestion(R"({"zero_optimization": {"overlap_com": 1}})"), "zero_optimization.overlap_comm");
  EXPECT_EQ(suggestion(R"({"zero_optimization": {"offload_param": {"pin_memroy": 1}}})"),
            "zero_optimization.offload_param.pin_memory");
  EXPECT_EQ(suggestion(R"({"fp61": {}})"), "fp16");
  EXPECT_EQ(suggestion(R"({"FP16": {}})"), "fp16");
  EXPECT_EQ(suggestion(R"({"gradient-clipping": 1})"), "gradient_clipping");
}

TEST(UnknownKeys, CompletesANameThatBreaksOff) {
  EXPECT_EQ(suggestion(R"({"train_micro_batch_size": 8})"), "train_micro_batch_size_per_gpu");
  EXPECT_EQ(suggestion(R"({"gradient_accumulation": 8})"), "gradient_accumulation_steps");
}

TEST(UnknownKeys, CompletesANameThatLacksAWord) {
  EXPECT_EQ(suggestion(R"({"train_micro_batch_per_gpu": 8})"), "train_micro_batch_size_per_gpu");
  EXPECT_EQ(suggestion(R"({"micro_batch_size_per_gpu": 8})"), "train_micro_batch_size_per_gpu");
  EXPECT_EQ(suggestion(R"({"train_size": 8})"), "") << "two words are the user's own";
}

TEST(UnknownKeys, KnowsAKeyAtTheWrongDepth) {
  EXPECT_EQ(suggestion(R"({"offload_optimizer": {"device": "cpu"}})"), "zero_optimization.offload_optimizer");
  EXPECT_EQ(suggestion(R"({"reduce_bucket_size": 5e8})"), "zero_optimization.reduce_bucket_size");
  EXPECT_EQ(suggestion(R"({"zero_optimization": {"gradient_clipping": 1}})"), "gradient_clipping");
  EXPECT_EQ(suggestion(R"({"zero_optimization": {"aio": {"block_size": 1}}})"), "aio");
  EXPECT_TRUE(unknown(R"({"zero_optimization": {"aio": {"block_size": 1}}})").at(0).misspelt);
  EXPECT_FALSE(
      unknown(R"({"zero_optimization": {"aio": {"block_size": 1}}, "aio": {"block_size": 1}})").at(0).misspelt);
}

TEST(UnknownKeys, InAClosedSectionNoneIsTheUsersOwn) {
  EXPECT_EQ(suggestion(R"({"zero_optimization": {"overlap": true}})"), "zero_optimization.overlap_comm");
  const std::vector<UnknownKey> keys =
      unknown(R"({"zero_optimization": {"my_own_key": 1, "offload_param": {"comment": 1}}, "comment": 1})");
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_TRUE(keys[0].refused);
  EXPECT_EQ(keys[1].key, "zero_optimization.offload_param.comment");
  EXPECT_TRUE(keys[1].refused);
  EXPECT_FALSE(keys[2].refused);
}

TEST(UnknownKeys, NamesWithoutStage3AreKnown) {
  EXPECT_THAT(unknown(R"({"zero_optimization": {"prefetch_bucket_size": 1, "max_live_parameters": 1}})"), IsEmpty());
}

TEST(UnknownKeys, KnowsAKeyWithStraySpace) {
  const std::vector<UnknownKey> keys = unknown(R"({"zero_optimization": {"stage ": 1}, " seed": 1})");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].key, "zero_optimization.stage ");
  EXPECT_EQ(keys[0].suggestion, "zero_optimization.stage");
  EXPECT_TRUE(keys[0].stray_space);
  EXPECT_EQ(keys[1].suggestion, "seed");
  EXPECT_TRUE(keys[1].stray_space);
}

TEST(UnknownKeys, ADottedKeyIsOneThatIsToBeNested) {
  const std::vector<UnknownKey> keys = unknown(R"({"zero_optimization.offload_param.device": "cpu", "my.key": 1})");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_THAT(why_refused(keys[0]),
              AllOf(HasSubstr("unknown key 'zero_optimization.offload_param.device'"),
                    HasSubstr("{\"zero_optimization\": {\"offload_param\": {\"device\": ...}}}")));
  EXPECT_EQ(why_refused(keys[1]), "") << "the user's own";
}

TEST(UnknownKeys, KeysOfTheUsersOwnGetNoSuggestion) {
  for (const char* name :
       {"my_company_settings", "comment", "_comment", "project_name", "notes", "x", "", "model", "lr"}) {
    Json json = Json::object();
    json[name] = Json{{"stage", 1}};
    const std::vector<UnknownKey> keys = unknown_keys(json);
    ASSERT_EQ(keys.size(), 1u) << name << ": what lies below an unknown key is the user's own";
    EXPECT_EQ(keys[0].key, name);
    EXPECT_EQ(keys[0].suggestion, "") << name;
    EXPECT_FALSE(keys[0].stray_space);
  }
}

TEST(UnknownKeys, MisspeltIsWhatCanBeNothingElse) {
  const auto misspelt = [](const char* text) {
    const std::vector<UnknownKey> keys = unknown(text);
    EXPECT_EQ(keys.size(), 1u) << text;
    return !keys.empty() && keys.front().misspelt;
  };
  for (const char* slip :
       {R"({"train_batchsize": 8})", R"({"zero_optimisation": {"stage": 1}})", R"({"FP16": {"enabled": true}})",
        R"({"gradient-clipping": 1})", R"({"zero_optimization": {"stgae": 1}})",
        R"({"zero_optimization": {"gradient_clipping": 1}})", R"({"zero_optimization.stage": 1})",
        R"({"zero_optimization": {"stage ": 1}})"}) {
    EXPECT_TRUE(misspelt(slip)) << slip;
  }
  for (const char* other :
       {R"({"train_batch_size": 8, "train_batchsize": 8})", R"({"pipe_parallel_size": 2})", R"({"data_type": "bf16"})",
        R"({"zero_optimization": {"overlap": true}})", R"({"zero_optimization": {"stage": 1, "stage ": 2}})",
        R"({"train_micro_batch_size": 8})", R"({"offload_optimizer": {"device": "cpu"}})", R"({"seeds": 1})",
        R"({"zero_optimization": {"stage3_max_live_tensors": 1}})"}) {
    EXPECT_FALSE(misspelt(other)) << other;
  }
}

TEST(UnknownKeys, AMarkSwitchesAKeyOff) {
  for (const char* off : {R"({"_optimizer": {"type": "Adam"}})", R"({"#train_batch_size": 8})", R"({"fp16_": {}})",
                          R"({"zero_optimization": {"//overlap_comm": true}})"}) {
    EXPECT_EQ(suggestion(off), "") << off;
  }
}

TEST(UnknownKeys, AnotherProgramsLongKeyResemblesNone) {
  EXPECT_EQ(suggestion(R"({"pipe_parallel_size": 2})"), "");
  EXPECT_EQ(suggestion(R"({"model_parallel_size": 2})"), "");
}

TEST(UnknownKeys, LooksOnlyWhereDeepSpeedItselfLooks) {
  EXPECT_THAT(unknown(R"({"optimizer": {"type": "Mine", "params": {"stgae": 1}}})"), IsEmpty());
  EXPECT_THAT(unknown(R"({"fp16": null, "zero_optimization": true, "scheduler": []})"), IsEmpty());
  EXPECT_THAT(unknown_keys(Json::array()), IsEmpty());
}

}  // namespace
}  // namespace dsat::config
