// The user's command for one trial and for the best configuration: the file of the configuration, and the flags that
// have to say the same.
#include "command/command_template.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "command_fixture.h"
#include "dsat/host/study.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Command, ReplacesTheConfigurationInEachOfItsForms) {
  const std::string want = "/t/ds_config.json";
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed_config", "a.json"}),
              ElementsAre("python3", "t.py", "--deepspeed_config", want));
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed-config=a.json", "-x"}),
              ElementsAre("python3", "t.py", "--deepspeed-config=" + want, "-x"));
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "a.json"}),
              ElementsAre("python3", "t.py", "--deepspeed", want));
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed=a.json"}), ElementsAre("python3", "t.py", "--deepspeed=" + want));
}

TEST_F(Command, DeepspeedIsABareSwitchBesideDeepspeedConfig) {
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "x.json", "--deepspeed_config", "a.json"}),
              ElementsAre("python3", "t.py", "--deepspeed", "x.json", "--deepspeed_config", "/t/ds_config.json"));
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "--deepspeed_config", "a.json"}),
              ElementsAre("python3", "t.py", "--deepspeed", "--deepspeed_config", "/t/ds_config.json"));
}

TEST_F(Command, DeepspeedTakesAnExistingFileWhateverItsName) {
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed", "config"}), HasSubstr("no DeepSpeed configuration"));
  write_text(dir() / "config", "{}");
  const CommandTemplate command = parse({"python3", "t.py", "--deepspeed", "config"});
  EXPECT_EQ(command.config_file(), dir() / "config");
}

TEST_F(Command, FillsPlaceholdersAnywhere) {
  request_.ds_config = "base.json";
  EXPECT_THAT(render({"python3", "t.py", "--conf", "x={ds_config}", "{trial_dir}/out"}),
              ElementsAre("python3", "t.py", "--conf", "x=/t/ds_config.json", "/t/out"));
  EXPECT_EQ(parse({"python3", "--deepspeed_config", "{ds_config}"}).config_file(), dir() / "base.json");
}

TEST_F(Command, RefusesNoConfigurationAndMoreThanOne) {
  EXPECT_THAT(why_not({"python3", "t.py"}), HasSubstr("no DeepSpeed configuration"));
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed"}), HasSubstr("no DeepSpeed configuration"));
  EXPECT_THAT(why_not({"python3", "t.py", "{ds_config}"}), HasSubstr("no DeepSpeed configuration"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config", "a.json", "--deepspeed_config=b.json"}),
              HasSubstr("(a.json and b.json)"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config"}), HasSubstr("ends at --deepspeed_config"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config="}), HasSubstr("empty"));
  request_.ds_config = "base.json";
  EXPECT_THAT(why_not({"python3", "t.py"}), HasSubstr("{ds_config}"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config", "other.json"}), HasSubstr("two configurations"));
}

TEST_F(Command, TheSameConfigurationTwiceIsOne) {
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed_config", "a.json", "--deepspeed_config=./a.json"}),
              ElementsAre("python3", "t.py", "--deepspeed_config", "/t/ds_config.json",
                          "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(
      why_not({"python3", "--deepspeed_config=a.json", "--deepspeed_config=a.json", "--deepspeed_config=b.json"}),
      HasSubstr("(a.json and b.json)"));
  request_.ds_config = dir() / "a.json";
  EXPECT_EQ(parse({"python3", "--deepspeed_config", "./a.json"}).config_file().lexically_normal(), dir() / "a.json");
}

TEST_F(Command, RefusesACommandThatCannotRun) {
  EXPECT_THAT(why_not({}), HasSubstr("no training command"));
  EXPECT_THAT(why_not({"nonesuch", "--deepspeed_config", "a.json"}), HasSubstr("'nonesuch' not found"));
}

TEST_F(Command, KeepsHuggingFaceFlagsInStepWithTheConfiguration) {
  const Json config{{"train_micro_batch_size_per_gpu", 12}, {"gradient_accumulation_steps", 4}};
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "a.json", "--per_device_train_batch_size", "1",
                      "--gradient_accumulation_steps=1"},
                     config),
              ElementsAre("python3", "t.py", "--deepspeed", "/t/ds_config.json", "--per_device_train_batch_size", "12",
                          "--gradient_accumulation_steps=4"));
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed=a.json", "--per_device_train_batch_size=1"}, config),
              ElementsAre("python3", "t.py", "--deepspeed=/t/ds_config.json", "--per_device_train_batch_size=12",
                          "--gradient_accumulation_steps", "4"));
  EXPECT_FALSE(parse({"python3", "--deepspeed_config=a.json"}).may_fill_in_auto());
  EXPECT_TRUE(parse({"python3", "--gradient_accumulation_steps=1", "--deepspeed_config=a.json"}).may_fill_in_auto());
  EXPECT_THAT(why_not({"python3", "--deepspeed=a.json", "--per_device_train_batch_size"}),
              HasSubstr("--per_device_train_batch_size"));
}

TEST_F(Command, AutoMayBeFilledInByAccelerateAndByAScriptThatTakesTheFile) {
  EXPECT_TRUE(parse({"accelerate", "launch", "--use_deepspeed", "--deepspeed_config_file", "a.json", "t.py"})
                  .may_fill_in_auto());
  EXPECT_TRUE(parse({"accelerate", "launch", "t.py", "--deepspeed_config=a.json"}).may_fill_in_auto());
  EXPECT_TRUE(parse({"python3", "t.py", "--deepspeed", "a.json", "--config", "run.yaml"}).may_fill_in_auto());
  EXPECT_FALSE(parse({"deepspeed", "t.py", "--deepspeed", "--deepspeed_config=a.json"}).may_fill_in_auto());
}

TEST_F(Command, TheTrainerGetsTheFlagsWhoseAbsenceMeansSomethingElse) {
  const Json config{{"train_micro_batch_size_per_gpu", 12}, {"gradient_accumulation_steps", 2}};
  // --deepspeed with a file is its form, and the option beside it is its own: without the flag it would take 8.
  EXPECT_THAT(render({"deepspeed", "run_clm.py", "--deepspeed", "a.json", "--output_dir", "out"}, config),
              ElementsAre("deepspeed", "--master_port", "29500", "--include", "localhost:0,2", "run_clm.py",
                          "--deepspeed", "/t/ds_config.json", "--output_dir", "out", "--per_device_train_batch_size",
                          "12", "--gradient_accumulation_steps", "2"));
  // A script that merely takes a file there may not know the flag.
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "a.json"}, config),
              ElementsAre("python3", "t.py", "--deepspeed", "/t/ds_config.json"));
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed=a.json", "--per-device-train-batch-size=1",
                      "--gradient-accumulation-steps", "1"},
                     config),
              ElementsAre("python3", "t.py", "--deepspeed=/t/ds_config.json", "--per-device-train-batch-size=12",
                          "--gradient-accumulation-steps", "2"));
}

TEST_F(Command, MapsKeysToFlagsAndNeverPassesAuto) {
  request_.arg_mappings = {
      {"optimizer.params.lr", "--lr"}, {"train_micro_batch_size_per_gpu", "--micro-bs"}, {"none.such", "--none"}};
  const Json config{{"train_micro_batch_size_per_gpu", 12}, {"optimizer", {{"params", {{"lr", "auto"}}}}}};
  EXPECT_THAT(
      render({"python3", "t.py", "--lr", "0.1", "--micro_bs=1", "--none", "0", "--deepspeed_config=a.json"}, config),
      ElementsAre("python3", "t.py", "--lr", "0.1", "--micro_bs=12", "--none", "0",
                  "--deepspeed_config=/t/ds_config.json"));
  EXPECT_TRUE(parse({"python3", "--lr=1", "--micro-bs=1", "--none=0", "--deepspeed_config=a.json"}).may_fill_in_auto());
}

TEST_F(Command, RefusesAMappingToAFlagThatTheCommandDoesNotHave) {
  request_.arg_mappings = {{"train_micro_batch_size_per_gpu", "--bs"}};
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed_config", "a.json"}),
              HasSubstr("train_micro_batch_size_per_gpu names --bs, which the command does not have"));
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed_config", "a.json", "--bs"}), HasSubstr("ends at --bs"));
  // Its Trainer has them whether they are written or not.
  request_.arg_mappings = {{"train_micro_batch_size_per_gpu", "--per_device_train_batch_size"}};
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "a.json", "--output_dir", "o"},
                     {{"train_micro_batch_size_per_gpu", 3}}),
              Contains("3"));
}

TEST_F(Command, TheBestCommandHasTheFlagsButNoPortOrSlots) {
  const CommandTemplate command =
      parse({"deepspeed", "--num_gpus", "2", "t.py", "--deepspeed", "a.json", "--per_device_train_batch_size", "1"});
  const Json config{{"train_micro_batch_size_per_gpu", 12}, {"gradient_accumulation_steps", 1}};
  EXPECT_THAT(command.render_best(config, "/run/best_ds_config.json"),
              ElementsAre("deepspeed", "--num_gpus", "2", "t.py", "--deepspeed", "/run/best_ds_config.json",
                          "--per_device_train_batch_size", "12"));
}

TEST_F(Command, TheBestCommandNamesTheBestConfigurationWhateverItIsCalledInATrial) {
  request_.ds_config = "base.json";
  const CommandTemplate command = parse({"python3", "{trial_dir}/ds_config.json", "--out={trial_dir}/out"});
  EXPECT_THAT(command.render_best(Json::object(), "/run/best_ds_config.json"),
              ElementsAre("python3", "/run/best_ds_config.json", "--out=/run/out"));
}

TEST_F(Command, FindsTheConfigurationThatACommandNames) {
  EXPECT_EQ(config_file_of({"deepspeed", "t.py", "--deepspeed", "a.json"}, dir()), dir() / "a.json");
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed", "--deepspeed_config=b"}, dir()), dir() / "b");
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed_config", "{ds_config}"}, dir()), std::nullopt);
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed_config", "a", "--deepspeed_config", "b"}, dir()), std::nullopt);
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed_config"}, dir()), std::nullopt);
}

TEST_F(Command, AccelerateNamesTheConfigurationInFrontOfTheScript) {
  EXPECT_EQ(config_file_of({"accelerate", "launch", "--deepspeed_config_file", "a.json", "t.py"}, dir()),
            dir() / "a.json");
  EXPECT_EQ(config_file_of({"accelerate", "launch", "t.py", "--deepspeed_config_file", "a.json"}, dir()), std::nullopt)
      << "an option of the script's";
  write_text(dir() / "settings.yaml", "deepspeed_config:\n  deepspeed_config_file: b.json\n");
  const std::string settings = (dir() / "settings.yaml").string();
  EXPECT_EQ(config_file_of({"accelerate", "launch", "--config_file", settings, "t.py"}, dir()), dir() / "b.json");
  EXPECT_EQ(config_file_of({}, dir()), std::nullopt);
}

TEST_F(Command, ATrainingYamlOfAScriptOfAnotherKindGetsNoKeys) {
  write_text(dir() / "run.yaml", "output_dir: o\nlearning_rate: 1\nmicro_batch_size: 4  # mine\nbatch_size: 8\n");
  write_text(dir() / "t.py", "argparse");
  const Json config{{"train_micro_batch_size_per_gpu", 12}, {"gradient_accumulation_steps", 2}};
  const CommandTemplate command = parse({"python3", "t.py", "--config=run.yaml", "--deepspeed_config", "a.json"});
  const TrialContext trial{"/t/ds_config.json", "/t", {{"0", 0, {}}}, 29500, config};
  EXPECT_THAT(command.render(trial),
              ElementsAre("python3", "t.py", "--config=/t/train.yaml", "--deepspeed_config", "/t/ds_config.json"));
  EXPECT_EQ(command.files(trial)[0].text, "output_dir: o\nlearning_rate: 1\nmicro_batch_size: 12\nbatch_size: 8\n");
  EXPECT_EQ(command.with_own_batch(Json::object())["train_micro_batch_size_per_gpu"], 4);
  write_text(dir() / "run.yaml", "output_dir: o\nlearning_rate: 1\n");
  EXPECT_TRUE(parse({"python3", "t.py", "run.yaml", "--deepspeed_config", "a.json"}).files(trial).empty());
  write_text(dir() / "t.py", "from transformers import HfArgumentParser");
  EXPECT_THAT(parse({"python3", "t.py", "run.yaml", "--deepspeed_config", "a.json"}).files(trial)[0].text,
              HasSubstr("per_device_train_batch_size: 12\ngradient_accumulation_steps: 2\n"));
}

TEST_F(Command, PlaceholdersStandForATrialsValues) {
  const Json config{{"train_micro_batch_size_per_gpu", 12},
                    {"gradient_accumulation_steps", 2},
                    {"zero_optimization", {{"stage", 3}}}};
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed_config", "a.json", "--b={micro_batch}x{accumulation}", "{stage}"},
                     config),
              ElementsAre("python3", "t.py", "--deepspeed_config", "/t/ds_config.json", "--b=12x2", "3"));
}

TEST_F(Command, APlaceholderOfAnyKeyIsFilledAndAnEmptiedWordGoes) {
  const Argv argv{"env",    "A={alloc}", "deepspeed", "{bind}",  "t.py",           "--deepspeed_config",
                  "a.json", "{switch}",  "--x={x.y}", "{other}", "{\"a\": {x.y}}", ""};
  const Json with{{"alloc", "big"}, {"bind", "--bind_cores_to_rank"}, {"switch", "--on"}, {"x", {{"y", 4}}}};
  const Argv filled = render(argv, with);
  EXPECT_THAT(filled, AllOf(Contains("A=big"), Contains("--bind_cores_to_rank"), Contains("--on"), Contains("--x=4"),
                            Contains("{other}"), Contains("{\"a\": 4}")));
  EXPECT_EQ(filled.back(), "") << "the user's own";
  const Json without{{"alloc", ""}, {"bind", ""}, {"switch", nullptr}, {"x", {{"y", true}}}};
  const Argv emptied = render(argv, without);
  EXPECT_THAT(emptied, AllOf(Contains("A="), Contains("--x=True"), Not(Contains("--bind_cores_to_rank"))));
  EXPECT_EQ(emptied.size() + 2, filled.size());
  EXPECT_EQ(std::count(emptied.begin(), emptied.end(), "t.py"), 1);
}

TEST_F(Command, TheFileThatAccelerateAndTheTrainerNameIsReplacedTwice) {
  const CommandTemplate command =
      parse({"accelerate", "launch", "--deepspeed_config_file", "a.json", "t.py", "--deepspeed", "./a.json"});
  const Argv argv = command.render({"/1/ds.json", "/1", {}, 1001, Json::object()});
  EXPECT_EQ(std::count(argv.begin(), argv.end(), "/1/ds.json"), 2) << ::testing::PrintToString(argv);
}

TEST_F(Command, AMappedTruthValueKeepsItsSpelling) {
  request_.arg_mappings = {{"zero_optimization.overlap_comm", "--overlap"}};
  const Json config{{"zero_optimization", {{"overlap_comm", false}}}};
  for (const auto& [given, written] : {std::pair("True", "False"), {"true", "false"}, {"1", "0"}, {"maybe", "False"}}) {
    const CommandTemplate command = parse({"deepspeed", "t.py", "--deepspeed_config", "a.json", "--overlap", given});
    EXPECT_EQ(command.render({"/1/ds.json", "/1", {}, 1001, config}).back(), written);
  }
}

TEST_F(Command, EveryTrialGetsAFreshArgumentList) {
  const CommandTemplate command = parse({"torchrun", "t.py", "--deepspeed_config", "a.json"});
  const Argv first = command.render({"/1/ds.json", "/1", {}, 1001, Json::object()});
  const Argv second = command.render({"/2/ds.json", "/2", {}, 1002, Json::object()});
  EXPECT_THAT(second, Contains("1002"));
  EXPECT_THAT(second, Not(Contains("1001")));
  EXPECT_EQ(first.size(), second.size());
}

TEST_F(Command, AGivenConfigurationNeedsAPlaceOrAScriptThatReadsTheVariable) {
  request_.ds_config = "base.json";
  write_text(dir() / "silent.py", "import dsatlike, mydsat\nprint('from dsa')\n");
  EXPECT_THAT(why_not({"python3", "silent.py"}), HasSubstr("environment's DSAT_DS_CONFIG"));
  write_text(dir() / "reads.py", "open(os.environ['DSAT_DS_CONFIG'])\n");
  write_text(dir() / "package.py", "import torch\n    from dsat.huggingface import x\n");
  std::filesystem::create_directory(dir() / "pkg");
  write_text(dir() / "pkg/train.py", "import dsat\n");
  for (const Argv& argv : {Argv{"python3", "reads.py"}, Argv{"deepspeed", "package.py", "x"},
                           Argv{"python3", "-m", "pkg.train"}, Argv{"env", "python3", "-c", "e['DSAT_DS_CONFIG']"}}) {
    EXPECT_EQ(parse(argv).config_file(), dir() / "base.json") << argv.back();
  }
  EXPECT_THAT(render({"python3", "reads.py"}), ElementsAre("python3", "reads.py"));
  EXPECT_THAT(parse({"python3", "reads.py"}).render_best(Json::object(), "/run/best.json"),
              ElementsAre("env", "DSAT_DS_CONFIG=/run/best.json", "python3", "reads.py"));
  // accelerate's settings may name a configuration, too.
  write_text(dir() / "acc.yaml", "deepspeed_config:\n  deepspeed_config_file: a.json\n");
  const CommandTemplate named = parse({"accelerate", "launch", "--config_file=acc.yaml", "reads.py"});
  EXPECT_EQ(named.render_best(Json::object(), "/run/best.json")[1], "DSAT_DS_CONFIG=/run/best.json");
}

// It may read the variable and not its arguments: the best command then says both, as a trial has both.
TEST_F(Command, TheBestCommandHasTheVariableWhereTheScriptReadsIt) {
  write_text(dir() / "reads.py", "import dsat\n");
  write_text(dir() / "plain.py", "import torch\n");
  const auto best = [&](const char* script) {
    return parse({"python3", script, "--deepspeed_config", "a.json"}).render_best(Json::object(), "/run/best.json");
  };
  EXPECT_THAT(best("reads.py"), ElementsAre("env", "DSAT_DS_CONFIG=/run/best.json", "python3", "reads.py",
                                            "--deepspeed_config", "/run/best.json"));
  EXPECT_THAT(best("plain.py"), ElementsAre("python3", "plain.py", "--deepspeed_config", "/run/best.json"));
}

TEST_F(Command, AScriptThatReadsItsEnvironmentNeedNotNameTheConfiguration) {
  request_.config_by_environment = true;
  request_.ds_config = "given.json";
  EXPECT_EQ(parse({"python3", "t.py"}).config_file(), dir() / "given.json");
  EXPECT_THAT(render({"python3", "t.py"}), ElementsAre("python3", "t.py"));
  // What the command says is replaced all the same.
  EXPECT_EQ(parse({"python3", "t.py", "--deepspeed", "a.json"}).config_file(), dir() / "given.json");
  EXPECT_THAT(render({"python3", "t.py", "--deepspeed", "a.json"}),
              ElementsAre("python3", "t.py", "--deepspeed", "/t/ds_config.json"));
  request_.ds_config.reset();
  EXPECT_EQ(parse({"python3", "t.py"}).config_file(), "");
}

}  // namespace
}  // namespace dsat::host
