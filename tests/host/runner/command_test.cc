#include "command.h"

#include <gmock/gmock.h>

#include "dsat/host/study.h"
#include "support.h"

namespace dsat::host {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Command : public TempDirTest {
 protected:
  Command() {
    for (const char* name : {"python3", "deepspeed", "torchrun", "env", "srun"}) {
      write_program(dir() / name, "#!/bin/sh\n");
    }
    request_.cwd = dir();
    request_.environment = {"PATH=" + dir().string()};
  }

  CommandTemplate parse(Argv argv) {
    request_.argv = std::move(argv);
    auto command = CommandTemplate::parse(request_);
    if (!command.ok()) throw std::runtime_error(command.status().message());
    return std::move(command).value();
  }
  std::string error_of(Argv argv) {
    request_.argv = std::move(argv);
    const auto command = CommandTemplate::parse(request_);
    EXPECT_EQ(command.status().code(), Status::Code::invalid);
    return command.status().message();
  }
  Argv render(Argv argv, const Json& config = Json::object()) {
    return parse(std::move(argv)).render({"/t/ds_config.json", "/t", {{"0", 0, {}}, {"2", 2, {}}}, 29500, config});
  }

  CommandRequest request_;
};

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
  EXPECT_THAT(error_of({"python3", "t.py", "--deepspeed", "config"}), HasSubstr("names no DeepSpeed configuration"));
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
  EXPECT_THAT(error_of({"python3", "t.py"}), HasSubstr("names no DeepSpeed configuration"));
  EXPECT_THAT(error_of({"python3", "t.py", "--deepspeed"}), HasSubstr("names no DeepSpeed configuration"));
  EXPECT_THAT(error_of({"python3", "t.py", "{ds_config}"}), HasSubstr("names no DeepSpeed configuration"));
  EXPECT_THAT(error_of({"python3", "--deepspeed_config", "a.json", "--deepspeed_config=b.json"}),
              HasSubstr("more than one configuration (a.json and b.json)"));
  EXPECT_THAT(error_of({"python3", "--deepspeed_config"}), HasSubstr("ends at --deepspeed_config"));
  EXPECT_THAT(error_of({"python3", "--deepspeed_config="}), HasSubstr("empty"));
  request_.ds_config = "base.json";
  EXPECT_THAT(error_of({"python3", "t.py"}), HasSubstr("{ds_config}"));
  EXPECT_THAT(error_of({"python3", "--deepspeed_config", "other.json"}), HasSubstr("two configurations"));
}

TEST_F(Command, TheSameConfigurationTwiceIsOne) {
  request_.ds_config = dir() / "a.json";
  EXPECT_EQ(parse({"python3", "--deepspeed_config", "./a.json"}).config_file().lexically_normal(), dir() / "a.json");
}

TEST_F(Command, RefusesACommandThatCannotRun) {
  EXPECT_THAT(error_of({}), HasSubstr("no training command"));
  EXPECT_THAT(error_of({"nonesuch", "--deepspeed_config", "a.json"}), HasSubstr("'nonesuch' not found"));
}

TEST_F(Command, GivesTheDeepspeedLauncherItsPortAndSlots) {
  EXPECT_THAT(render({"deepspeed", "--num_gpus", "2", "--num_nodes=1", "--no_local_rank", "t.py", "--num_gpus", "7",
                      "--deepspeed_config", "a.json"}),
              ElementsAre("deepspeed", "--master_port", "29500", "--include", "localhost:0,2", "--no_local_rank",
                          "t.py", "--num_gpus", "7", "--deepspeed_config", "/t/ds_config.json"));
  EXPECT_THAT(render({"env", "A=1", "deepspeed", "-i", "localhost:0", "--master_port=1", "-e", "x", "t.py",
                      "--deepspeed_config", "a.json"}),
              ElementsAre("env", "A=1", "deepspeed", "--master_port", "29500", "--include", "localhost:0,2", "t.py",
                          "--deepspeed_config", "/t/ds_config.json"));
}

TEST_F(Command, GivesTorchrunItsPort) {
  EXPECT_THAT(render({"torchrun", "--nproc_per_node", "2", "--master-port", "1", "t.py", "--master_port", "5",
                      "--deepspeed_config", "a.json"}),
              ElementsAre("torchrun", "--master_port", "29500", "--nproc_per_node", "2", "t.py", "--master_port", "5",
                          "--deepspeed_config", "/t/ds_config.json"));
  EXPECT_THAT(render({"python3", "-u", "-m", "torch.distributed.run", "t.py", "--deepspeed_config=a.json"}),
              ElementsAre("python3", "-u", "-m", "torch.distributed.run", "--master_port", "29500", "t.py",
                          "--deepspeed_config=/t/ds_config.json"));
}

TEST_F(Command, AScriptIsNoLauncher) {
  EXPECT_EQ(parse({"python3", "t.py", "deepspeed", "--deepspeed_config=a.json"}).launcher(), Launcher::none);
  EXPECT_EQ(parse({"python3", "bin/deepspeed", "t.py", "--deepspeed_config=a.json"}).launcher(), Launcher::deepspeed);
}

TEST_F(Command, ReadsHowManySlotsALauncherTakes) {
  const auto slots = [&](Argv argv) {
    argv.push_back("--deepspeed_config=a.json");
    return parse(std::move(argv)).slots_per_trial();
  };
  EXPECT_EQ(slots({"deepspeed", "--num_gpus", "8", "t.py"}), 8);
  EXPECT_EQ(slots({"torchrun", "--nproc-per-node=4", "t.py"}), 4);
  EXPECT_EQ(slots({"torchrun", "--nproc_per_node", "gpu", "t.py"}), std::nullopt);
  EXPECT_EQ(slots({"deepspeed", "--num_gpus=-1", "t.py"}), std::nullopt);
  EXPECT_EQ(slots({"python3", "--ranks", "2"}), 2);
  EXPECT_EQ(slots({"srun", "-n", "16", "python3"}), 16);
  EXPECT_EQ(slots({"python3", "-n", "16"}), std::nullopt);
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
  EXPECT_FALSE(parse({"python3", "--deepspeed_config=a.json"}).is_hugging_face());
  EXPECT_TRUE(parse({"python3", "--gradient_accumulation_steps=1", "--deepspeed_config=a.json"}).is_hugging_face());
  EXPECT_THAT(error_of({"python3", "--deepspeed=a.json", "--per_device_train_batch_size"}), HasSubstr("takes a value"));
}

TEST_F(Command, MapsKeysToFlagsAndNeverPassesAuto) {
  request_.arg_mappings = {{"optimizer.params.lr", "--lr"},
                           {"train_micro_batch_size_per_gpu", "--bs"},
                           {"fp16.enabled", "--fp16"},
                           {"none.such", "--none"}};
  const Json config{{"train_micro_batch_size_per_gpu", 12},
                    {"optimizer", {{"params", {{"lr", "auto"}}}}},
                    {"fp16", {{"enabled", true}}}};
  EXPECT_THAT(render({"python3", "t.py", "--lr", "0.1", "--bs=1", "--deepspeed_config=a.json"}, config),
              ElementsAre("python3", "t.py", "--lr", "0.1", "--bs=12", "--deepspeed_config=/t/ds_config.json", "--fp16",
                          "true"));
  EXPECT_TRUE(parse({"python3", "--deepspeed_config=a.json"}).is_hugging_face());
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

TEST_F(Command, RefusesDeepspeedsOwnTunerInATrial) {
  EXPECT_THAT(error_of({"deepspeed", "--num_gpus", "2", "--autotuning", "tune", "t.py", "--deepspeed", "a.json"}),
              HasSubstr("type dsat-host --autotuning tune"));
  EXPECT_THAT(error_of({"env", "X=1", "deepspeed", "--autotuning=run", "t.py", "--deepspeed", "a.json"}),
              HasSubstr("type dsat-host --autotuning tune"));
  EXPECT_NO_THROW(parse({"deepspeed", "t.py", "--autotuning", "mine", "--deepspeed", "a.json"}));
}

TEST_F(Command, FindsTheConfigurationThatACommandNames) {
  EXPECT_EQ(config_file_of({"deepspeed", "t.py", "--deepspeed", "a.json"}, dir()), dir() / "a.json");
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed", "--deepspeed_config=b"}, dir()), dir() / "b");
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed_config", "{ds_config}"}, dir()), std::nullopt);
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed_config", "a", "--deepspeed_config", "b"}, dir()), std::nullopt);
  EXPECT_EQ(config_file_of({"t.py", "--deepspeed_config"}, dir()), std::nullopt);
}

TEST_F(Command, EveryTrialGetsAFreshArgumentList) {
  const CommandTemplate command = parse({"torchrun", "t.py", "--deepspeed_config", "a.json"});
  const Argv first = command.render({"/1/ds.json", "/1", {}, 1001, Json::object()});
  const Argv second = command.render({"/2/ds.json", "/2", {}, 1002, Json::object()});
  EXPECT_THAT(second, Contains("1002"));
  EXPECT_THAT(second, Not(Contains("1001")));
  EXPECT_EQ(first.size(), second.size());
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
