// Configurations as DeepSpeed reads them, and values that its own checks refuse.
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json read(const std::string& text) { return canonical(parse(text, "test")); }
std::string zero(const std::string& members) { return "{\"zero_optimization\": {" + members + "}}"; }

// The value of the last of `members` as DeepSpeed reads it, or the refusal.
std::string seen(const std::string& members) {
  std::string text;
  const std::string refusal = error_of([&] { text = read(zero(members))["zero_optimization"].back().dump(); });
  return refusal == "no error" ? text : refusal;
}

TEST(Canonical, WordsThatDeepSpeedReadsAsTruthValues) {
  for (const char* yes : {"true", "\"yes\"", "\"YES\"", "\"On\"", "\"t\"", "\"1\"", "1", "1.0"}) {
    EXPECT_EQ(seen(std::string("\"overlap_comm\": ") + yes), "true") << yes;
  }
  for (const char* no : {"false", "\"n\"", "\"off\"", "\"False\"", "\"0\"", "0", "0.0"}) {
    EXPECT_EQ(seen(std::string("\"overlap_comm\": ") + no), "false") << no;
  }
  for (const char* neither : {"\"maybe\"", "\"\"", "\" true\"", "2", "-1", "0.5", "{}"}) {
    EXPECT_THAT(
        seen(std::string("\"overlap_comm\": ") + neither),
        AllOf(HasSubstr(std::string("zero_optimization.overlap_comm is ") + neither), HasSubstr("true or false")));
  }
}

TEST(Canonical, NullAndAuto) {
  EXPECT_EQ(seen("\"overlap_comm\": null"), "null") << "its default";
  EXPECT_EQ(seen("\"offload_param\": null"), "null");
  EXPECT_EQ(seen("\"reduce_scatter\": \"auto\""), "\"auto\"");
  EXPECT_EQ(seen("\"reduce_bucket_size\": \"auto\""), "\"auto\"");
  EXPECT_THAT(seen("\"reduce_scatter\": null"), HasSubstr("true or false"));
  EXPECT_THAT(seen("\"reduce_bucket_size\": null"), HasSubstr("at least 0"));
}

TEST(Canonical, Integers) {
  EXPECT_EQ(seen("\"reduce_bucket_size\": 5e8"), "500000000");
  EXPECT_EQ(seen("\"reduce_bucket_size\": \"5\""), "5");
  EXPECT_EQ(seen("\"stage3_prefetch_bucket_size\": 3774873.6"), "3774873") << "reckoned from the model's width";
  EXPECT_EQ(seen("\"mics_shard_size\": -1"), "-1") << "off";
  EXPECT_EQ(seen("\"zero_hpz_partition_size\": 0"), "0");
  for (const char* value : {"-1", "\"5e8\"", "0.5", "\"big\"", "{}"}) {
    EXPECT_THAT(seen(std::string("\"sub_group_size\": ") + value),
                AllOf(HasSubstr(std::string("zero_optimization.sub_group_size is ") + value), HasSubstr("at least 0")));
  }
}

TEST(Canonical, Stages) {
  EXPECT_EQ(seen("\"stage\": 2.0"), "2");
  EXPECT_EQ(seen("\"stage\": true"), "1");
  EXPECT_EQ(seen("\"stage\": \"2\""), "2") << "as pydantic 2 reads it";
  EXPECT_EQ(seen("\"stage\": \"all\""), "\"all\"") << "dsat's own";
  for (const char* value : {"4", "-1", "1.5", "\"4\"", "\"two\"", "null"}) {
    EXPECT_THAT(seen(std::string("\"stage\": ") + value),
                AllOf(HasSubstr(std::string("zero_optimization.stage is ") + value), HasSubstr("2 or 3")));
  }
  EXPECT_EQ(read(R"({"zero_optimization": true})").dump(), R"({"zero_optimization":{"stage":1}})");
  EXPECT_EQ(read(R"({"zero_optimization": "all"})").dump(), R"({"zero_optimization":"all"})");
}

TEST(Canonical, OffloadSections) {
  EXPECT_EQ(seen(R"("offload_optimizer": {"pin_memory": "yes", "ratio": 0.3, "buffer_count": 4.0})"),
            R"({"pin_memory":true,"ratio":0.3,"buffer_count":4})");
  EXPECT_THAT(seen(R"("offload_optimizer": {"device": "gpu"})"), HasSubstr("\"cpu\" or \"nvme\""));
  EXPECT_THAT(seen(R"("offload_param": {"pin_memory": "x"})"), HasSubstr("offload_param.pin_memory is \"x\""));
  EXPECT_THAT(seen(R"("offload_optimizer": {"ratio": 2})"), HasSubstr("0 to 1"));
  EXPECT_THAT(seen(R"("offload_param": true)"), HasSubstr("a section"));
}

TEST(Canonical, NamesWithoutStage3AreTheSameKeys) {
  EXPECT_EQ(read(zero("\"prefetch_bucket_size\": 1e6")).dump(),
            R"({"zero_optimization":{"stage3_prefetch_bucket_size":1000000}})");
  EXPECT_THAT(seen("\"prefetch_bucket_size\": 1, \"stage3_prefetch_bucket_size\": 2"), HasSubstr("keep one"));
  EXPECT_THAT(seen("\"stage3_prefetch_bucket_size\": 1, \"prefetch_bucket_size\": 2"), HasSubstr("keep one"));
}

TEST(Canonical, AnOlderSwitchBesideItsReplacementIsRefused) {
  for (const char* both : {R"("cpu_offload": true, "offload_optimizer": {"device": "cpu"})",
                           R"("offload_param": null, "cpu_offload_param": false)",
                           R"("stage3_gather_fp16_weights_on_model_save": true,
                              "gather_16bit_weights_on_model_save": true)"}) {
    EXPECT_THAT(seen(both), HasSubstr("refuses both")) << both;
  }
  EXPECT_EQ(seen(R"("offload_param": {"device": "cpu"}, "cpu_offload": true)"), "true") << "another one's";
}

TEST(Canonical, ListsAreReadValueByValue) {
  EXPECT_EQ(seen(R"("overlap_comm": ["yes", 0])"), "[true,false]");
  EXPECT_THAT(seen(R"("overlap_comm": [true, "maybe"])"), HasSubstr("overlap_comm is \"maybe\""));
  EXPECT_EQ(seen(R"("stage": [1, "all"])").substr(0, 33), "zero_optimization.stage is \"all\";");
}

TEST(Canonical, NamesOfATypeAreOneName) {
  const auto dtype = [](const char* name) {
    return *accumulation_dtype(canonical(Json{{"data_types", {{"grad_accum_dtype", name}}}}));
  };
  for (const char* half : {"fp16", "float16", "half", "torch.float16"}) EXPECT_EQ(dtype(half), "fp16") << half;
  for (const char* full : {"fp32", "float32", "float", "torch.float32"}) EXPECT_EQ(dtype(full), "fp32") << full;
  for (const char* brain : {"bf16", "bfloat16", "torch.bfloat16"}) EXPECT_EQ(dtype(brain), "bf16") << brain;
  EXPECT_EQ(accumulation_dtype(read(R"({"data_types": {"grad_accum_dtype": null}})")), std::nullopt);
  EXPECT_THAT(error_of([&] { dtype("FP32"); }),
              AllOf(HasSubstr("grad_accum_dtype is \"FP32\";"), HasSubstr("fp16 or bf16")));
}

TEST(Canonical, WhatPythonReadsAsATruthValueElsewhere) {
  EXPECT_EQ(read(R"({"fp16": {"enabled": 1}, "bf16": {"enabled": null}})").dump(),
            R"({"fp16":{"enabled":true},"bf16":{"enabled":null}})");
  EXPECT_EQ(read(R"({"fp16": {"enabled": "false"}, "bf16": {"enabled": "True"}})").dump(),
            R"({"fp16":{"enabled":false},"bf16":{"enabled":true}})");
  EXPECT_EQ(read(R"({"activation_checkpointing": {"partition_activations": 0}})").dump(),
            R"({"activation_checkpointing":{"partition_activations":false}})");
  EXPECT_THAT(error_of([] { read(R"({"activation_checkpointing": {"cpu_checkpointing": "false"}})"); }),
              AllOf(HasSubstr("cpu_checkpointing is \"false\";"), HasSubstr("true or false")));
}

TEST(Canonical, OtherSections) {
  const char* const kTaken =
      R"({"fp16":{"nope":1},"my_own":{"stage":9},"steps_per_print":null,"gradient_clipping":"auto",
                                 "communication_data_type":"FP16","flops_profiler":{"enabled":true},
                                 "optimizer":{"params":{"lr":"x"}}})";
  EXPECT_EQ(read(kTaken), parse(kTaken, "test"));
  const std::pair<const char*, const char*> kRefused[] = {
      {R"({"flops_profiler": {"enabled": "yes"}})", "flops_profiler.enabled is \"yes\";"},
      {R"({"flops_profiler": true})", "flops_profiler is true"},
      {R"({"wall_clock_breakdown": "x"})", "wall_clock_breakdown is \"x\""},
      {R"({"steps_per_print": 0})", "steps_per_print is 0"},
      {R"({"gradient_clipping": "x"})", "gradient_clipping is \"x\";"},
      {R"({"optimizer": "Adam"})", "optimizer is \"Adam\";"},
      {R"({"communication_data_type": "half"})", "communication_data_type is \"half\";"},
      {R"({"optimizer": {"type": 3}})", "optimizer.type is 3"},
      {R"({"zero_optimization": 3})", "zero_optimization is 3"},
      {R"({"zero_optimization": {"legacy_stage1": true}})", "legacy_stage1 is true"},
  };
  for (const auto& [text, message] : kRefused) {
    const Json json = parse(text, "test");
    EXPECT_THAT(error_of([&] { canonical(json); }), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace dsat::config
