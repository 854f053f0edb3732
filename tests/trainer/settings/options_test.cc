// The command line of dsat-trial with a built-in model.
// Each refusal names the option and what to do.
#include "settings/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "dsat/error.h"
#include "settings/trial_options.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::vector<std::string>& args) {
  try {
    parse_options(args);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OptionsTest, Checkpoints) {
  const Options options =
      parse_options({"--checkpoint-dir", "here", "--checkpoint-every=5", "--fp16-as-bf16", "--deepspeed_config", "c"});
  EXPECT_EQ(options.checkpoint_dir, "here");
  EXPECT_EQ(options.checkpoint_every, 5);
  EXPECT_TRUE(options.fp16_as_bf16);
  EXPECT_THROW(parse_options({"--checkpoint-every", "5", "--deepspeed_config", "c"}), Error);
  EXPECT_THROW(parse_options({"--checkpoint-every", "0", "--checkpoint-dir", "d", "--deepspeed_config", "c"}), Error);
  EXPECT_THROW(parse_options({"--checkpoint-dir", "", "--deepspeed_config", "c"}), Error);
}

TEST(OptionsTest, TheTypicalCommandLine) {
  const Options o = parse_options({"--model",
                                   "gpt",
                                   "--layers",
                                   "6",
                                   "--hidden=256",
                                   "--heads",
                                   "8",
                                   "--seq",
                                   "32",
                                   "--vocab",
                                   "1000",
                                   "--ranks",
                                   "2",
                                   "--device-memory",
                                   "96MiB",
                                   "--seed",
                                   "7",
                                   "--steps",
                                   "9",
                                   "--deepspeed_config",
                                   "ds.json"});
  EXPECT_EQ(o.model.kind, ModelKind::gpt);
  EXPECT_EQ(o.model.layers, 6);
  EXPECT_EQ(o.model.hidden, 256);
  EXPECT_EQ(o.model.heads, 8);
  EXPECT_EQ(o.model.seq, 32);
  EXPECT_EQ(o.model.vocab, 1000);
  EXPECT_EQ(o.ranks, 2);
  EXPECT_EQ(o.device_memory, 96u << 20);
  EXPECT_EQ(o.seed, 7u);
  EXPECT_EQ(o.steps, 9);
  EXPECT_EQ(o.deepspeed_config, "ds.json");
}

TEST(OptionsTest, TheConfigurationIsFoundHoweverItIsGiven) {
  EXPECT_EQ(parse_options({"--deepspeed_config=a.json"}).deepspeed_config, "a.json");
  EXPECT_EQ(parse_options({"--deepspeed-config", "a.json"}).deepspeed_config, "a.json");
  EXPECT_EQ(parse_options({"--deepspeed", "a.json"}).deepspeed_config, "a.json");
  EXPECT_EQ(parse_options({"--deepspeed", "--deepspeed_config", "a.json"}).deepspeed_config, "a.json");
  EXPECT_EQ(parse_options({"--local_rank=1", "--deepspeed_config", "a.json"}).deepspeed_config, "a.json");
  EXPECT_THAT(refusal_of({"--model", "mlp"}), HasSubstr("add --deepspeed_config FILE"));
  EXPECT_THAT(refusal_of({"--deepspeed_config=a", "--deepspeed_config=b"}), HasSubstr("given twice"));
  EXPECT_THAT(refusal_of({"--deepspeed_config="}), HasSubstr("is empty"));
}

TEST(OptionsTest, BadNumbersAreNamedWithTheirRange) {
  EXPECT_THAT(refusal_of({"--layers", "0"}), HasSubstr("--layers 0: "));
  EXPECT_THAT(refusal_of({"--layers", "2x"}), HasSubstr("--layers 2x"));
  EXPECT_THAT(refusal_of({"--layers", "-3"}), HasSubstr("--layers -3"));
  EXPECT_THAT(refusal_of({"--seq", "99999999999999999999"}), HasSubstr("--seq"));
  EXPECT_THAT(refusal_of({"--ranks", ""}), HasSubstr("--ranks"));
  EXPECT_THAT(refusal_of({"--layers"}), HasSubstr("--layers needs"));
  EXPECT_THAT(refusal_of({"--device-memory", "lots"}), HasSubstr("--device-memory"));
  EXPECT_THAT(refusal_of({"--device-memory", "0"}), HasSubstr("above 0"));
}

TEST(OptionsTest, CheckpointingIsASwitch) {
  EXPECT_FALSE(parse_options({"--deepspeed_config", "a"}).activation_checkpointing);
  EXPECT_TRUE(parse_options({"--activation-checkpointing", "--deepspeed_config", "a"}).activation_checkpointing);
  EXPECT_THAT(refusal_of({"--activation-checkpointing=yes"}), HasSubstr("unknown argument"));
}

TEST(OptionsTest, ATorchScriptModuleStandsInForAModel) {
  const Options o =
      parse_options({"--torchscript", "m.pt", "--input-spec=float:3", "--loss", "mean", "--deepspeed_config", "a"});
  EXPECT_EQ(o.torchscript, "m.pt");
  EXPECT_EQ(o.input_spec, "float:3");
  EXPECT_EQ(o.loss, "mean");
  EXPECT_THAT(refusal_of({"--torchscript", "m.pt", "--deepspeed_config", "a"}), HasSubstr("needs --input-spec"));
  EXPECT_THAT(refusal_of({"--input-spec", "float:3", "--deepspeed_config", "a"}), HasSubstr("only with --torchscript"));
  EXPECT_THAT(refusal_of({"--torchscript", "m.pt", "--input-spec", "float:3", "--model", "gpt"}),
              HasSubstr("choose one model"));
  EXPECT_THAT(refusal_of({"--torchscript", "m.pt", "--input-spec", "float:3", "--layers", "2"}),
              HasSubstr("choose one model"));
  EXPECT_THAT(refusal_of({"--torchscript", "m.pt", "--input-spec", "what"}), HasSubstr("--input-spec what"));
  EXPECT_THAT(refusal_of({"--torchscript=", "--deepspeed_config", "a"}), HasSubstr("--torchscript"));
  EXPECT_THAT(refusal_of({"--loss", "hinge"}), HasSubstr("mean, cross-entropy or mse"));
}

TEST(OptionsTest, ShapesMustSuitTheModel) {
  EXPECT_THAT(refusal_of({"--model", "mlp", "--heads", "2"}), AllOf(HasSubstr("--heads"), HasSubstr("--model mlp")));
  EXPECT_THAT(refusal_of({"--model", "resnet", "--layers", "2"}), HasSubstr("--model resnet"));
  EXPECT_THAT(refusal_of({"--hidden", "130"}), AllOf(HasSubstr("--hidden 130"), HasSubstr("--heads 4")));
  EXPECT_THAT(refusal_of({"--model", "resnet", "--depth", "19"}), HasSubstr("--depth 19: choose"));
  EXPECT_THAT(refusal_of({"stray"}), HasSubstr("unknown argument 'stray'"));
}

TEST(OptionsTest, DepthsOfBothResNetFamilies) {
  for (int depth : {8, 14, 18, 20, 34, 50, 56, 101, 110, 152}) EXPECT_TRUE(is_resnet_depth(depth)) << depth;
  for (int depth : {2, 9, 19, 100, 202}) EXPECT_FALSE(is_resnet_depth(depth)) << depth;
}

TEST(OptionsTest, HelpNeedsNothingElse) { EXPECT_TRUE(parse_options({"-h"}).help); }

TEST(OptionsTest, HelpHasTheOptionsOfModelsAndOfTheWorld) {
  for (const char* text : {"--layers N (=4)", "--ranks N (=1)", "--model gpt|resnet|mlp", "--deepspeed_config FILE"}) {
    EXPECT_THAT(options_help(), HasSubstr(text));
  }
}

TEST(OptionsTest, HelpNamesTheVariablesThatStandInForOptions) {
  for (const char* variable : {"DSAT_DEVICE,", "DSAT_DEVICE_MEMORY,"}) {
    EXPECT_THAT(options_help(), HasSubstr(variable));
    EXPECT_THAT(trial_options_help(), HasSubstr(variable));
  }
}

TEST(OptionsTest, TheLastOfSeveralHolds) {
  EXPECT_EQ(parse_options({"--steps", "5", "--steps=7", "--deepspeed_config", "a"}).steps, 7);
  EXPECT_EQ(parse_options({"--ranks", "5", "--ranks=7", "--deepspeed_config", "a"}).ranks, 7);
  EXPECT_THAT(refusal_of({"--steps", "x", "--steps", "5", "--deepspeed_config", "a"}), HasSubstr("--steps x"));
}

TEST(OptionsTest, AMisspeltOptionIsSuggested) {
  EXPECT_THAT(refusal_of({"--layer", "5"}), AllOf(HasSubstr("unknown argument '--layer'"), HasSubstr("--layers?")));
  EXPECT_THAT(refusal_of({"--rank", "5"}), HasSubstr("--ranks?"));
}

TEST(OptionsTest, TheEnvironmentStandsInForTheDeviceMemory) {
  ::setenv("DSAT_DEVICE_MEMORY", "1 GiB", 1);
  EXPECT_EQ(parse_options({"--deepspeed_config", "a"}).device_memory, 1u << 30);
  EXPECT_EQ(parse_options({"--deepspeed_config", "a", "--device-memory", "5"}).device_memory, 5u);
  ::setenv("DSAT_DEVICE_MEMORY", "many", 1);
  EXPECT_THAT(refusal_of({"--deepspeed_config", "a"}), HasSubstr("DSAT_DEVICE_MEMORY"));
  ::unsetenv("DSAT_DEVICE_MEMORY");
}

}  // namespace
}  // namespace dsat::trainer
