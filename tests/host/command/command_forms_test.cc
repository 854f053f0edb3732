// Forms in which people type commands: variables before the program, abbreviations, texts for a shell; and those that
// no trial can follow.
#include <gmock/gmock.h>

#include "command/launcher_options.h"
#include "command/missing_script.h"
#include "command/refused_forms.h"
#include "host/command/command_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CommandForms : public Command {
 protected:
  CommandForms() {
    write_text(dir() / "a.json", "{}");
    write_text(dir() / "t.py", "");
  }
  std::string why_part(const Argv& argv, const Environment& environment = {}) {
    return error_of([&] { refuse_part_of_a_job(argv, find_launcher(argv), environment); });
  }
};

TEST_F(CommandForms, VariablesBeforeTheProgramAreForEnv) {
  EXPECT_THAT(with_env({"A=1", "B=2", "python3", "t.py"}), ElementsAre("env", "A=1", "B=2", "python3", "t.py"));
  for (const Argv& argv : {Argv{"python3", "A=1"}, Argv{"./A=1"}, Argv{"=1"}, Argv{"1A=1"}, Argv{"a-b=1"}, Argv{}}) {
    EXPECT_EQ(with_env(argv), argv);
  }
}

TEST_F(CommandForms, AVariableOfLightningOrAccelerateNamesTheConfiguration) {
  for (const char* name : {"PL_DEEPSPEED_CONFIG_PATH", "ACCELERATE_DEEPSPEED_CONFIG_FILE"}) {
    const std::string variable = std::string(name) + "=";
    const CommandTemplate command = parse({"env", variable + "a.json", "python3", "t.py"});
    EXPECT_EQ(command.config_file(), dir() / "a.json");
    EXPECT_EQ(command.may_fill_in_auto(), name[0] == 'A');
    EXPECT_THAT(render({"env", variable + "a.json", "python3", "t.py"}), Contains(variable + "/t/ds_config.json"));
    EXPECT_THAT(command.render_best(Json::object(), "/b.json"), Contains(variable + "/b.json"));
  }
  EXPECT_THAT(render({"env", "PL_DEEPSPEED_CONFIG_PATH=b.json", "python3", "t.py", "--deepspeed_config", "a.json"}),
              Contains("PL_DEEPSPEED_CONFIG_PATH=b.json"))
      << "a flag comes first";
  EXPECT_THAT(why_not({"python3", "t.py", "PL_DEEPSPEED_CONFIG_PATH=a.json"}), HasSubstr("names no DeepSpeed"))
      << "an argument of the script";
}

TEST_F(CommandForms, AbbreviationsOfTheLaunchersOptionsAreWrittenOut) {
  EXPECT_THAT(without_abbreviations({"deepspeed", "--num_gpu", "2", "--hostf=h", "t.py", "--num_gpu", "3"}),
              ElementsAre("deepspeed", "--num_gpus", "2", "--hostfile=h", "t.py", "--num_gpu", "3"));
  EXPECT_THAT(without_abbreviations({"torchrun", "--nnode=1", "--nproc_per", "4", "--stand", "t.py"}),
              ElementsAre("torchrun", "--nnodes=1", "--nproc_per_node", "4", "--standalone", "t.py"));
  EXPECT_THAT(without_abbreviations({"deepspeed", "--force", "t.py"}),
              ElementsAre("deepspeed", "--force_multi", "t.py"));
  for (const Argv& argv :
       {Argv{"deepspeed", "--num", "2", "t.py"}, Argv{"deepspeed", "--launcher", "pdsh", "t.py"},
        Argv{"torchrun", "--n", "2", "t.py"}, Argv{"accelerate", "launch", "--num_proc", "2", "t.py"},
        Argv{"python3", "t.py", "--num_gpu", "2"}, Argv{"deepspeed", "--nothing", "t.py"}}) {
    EXPECT_EQ(without_abbreviations(argv), argv) << argv[1];
  }
}

TEST_F(CommandForms, ATrialsBatchFinderIsRefused) {
  const Argv trainer{"python3", "t.py", "--deepspeed", "a.json", "--auto_find_batch_size"};
  EXPECT_THAT(why_not(trainer), HasSubstr("--auto_find_batch_size"));
  for (const char* words : {"True", "--fp16"}) {
    Argv argv = trainer;
    argv.push_back(words);
    EXPECT_THAT(why_not(argv), HasSubstr("--auto_find_batch_size")) << words;
  }
  Argv off = trainer;
  off.push_back("False");
  EXPECT_NO_THROW(parse(off));
}

TEST_F(CommandForms, WhatTheLauncherRefusesIsRefused) {
  EXPECT_THAT(
      why_not({"deepspeed", "--include", "localhost:0", "--num_gpus", "2", "t.py", "--deepspeed_config", "a.json"}),
      AllOf(HasSubstr("--include"), HasSubstr("--num_gpus")));
  EXPECT_THAT(why_not({"deepspeed", "-e", "localhost:0", "--num_nodes=1", "t.py", "--deepspeed_config", "a.json"}),
              HasSubstr("keep one"));
  EXPECT_NO_THROW(
      parse({"deepspeed", "--include", "localhost:0", "--num_gpus", "-1", "t.py", "--deepspeed_config", "a.json"}));
  EXPECT_THAT(why_not({"python3", "-m", "deepspeed.launcher.launch", "--world_info=e30=", "t.py", "--deepspeed_config",
                       "a.json"}),
              HasSubstr("deepspeed.launcher.launch"));
}

TEST_F(CommandForms, APartOfAJobIsRefusedByName) {
  EXPECT_THAT(why_part({"deepspeed", "--no_ssh", "--node_rank", "0", "t.py"}), HasSubstr("--no_ssh"));
  EXPECT_THAT(why_part({"deepspeed", "--node_rank=1", "t.py"}), HasSubstr("--node_rank"));
  EXPECT_THAT(why_part({"accelerate", "launch", "--num_machines", "2", "--machine_rank", "0", "t.py"}),
              HasSubstr("--num_machines 2"));
  EXPECT_THAT(why_part({"torchrun", "--nnodes=2", "--node_rank=0", "t.py"}), HasSubstr("--nnodes 2"));
  EXPECT_THAT(why_part({"env", "NNODES=2", "swift", "sft"}), HasSubstr("NNODES=2"));
  EXPECT_THAT(why_part({"llamafactory-cli", "train", "a.yaml"}, {"NNODES=4"}), HasSubstr("(NNODES=1)"));
  EXPECT_EQ(why_part({"env", "NNODES=1", "swift", "sft"}, {"NNODES=2"}), "no error");
  EXPECT_EQ(why_part({"python3", "t.py"}, {"NNODES=2"}), "no error");
  for (const Argv& argv :
       {Argv{"deepspeed", "--no_ssh_check", "t.py", "--node_rank", "0"},
        Argv{"accelerate", "launch", "--num_machines=1", "t.py"}, Argv{"torchrun", "--nnodes=2", "t.py"},
        Argv{"torchrun", "--nnodes=1", "--node_rank=0", "t.py"},
        Argv{"srun", "torchrun", "--nnodes=2", "--node_rank=0", "t.py"}, Argv{"python3", "t.py"}}) {
    EXPECT_EQ(why_part(argv), "no error") << argv[1];
  }
}

TEST_F(CommandForms, AConfigurationInATextForAShellIsNamedWithItsPlace) {
  EXPECT_THAT(why_not({"env", "bash", "-c", "cd x && deepspeed t.py --deepspeed --deepspeed_config=a.json"}),
              AllOf(HasSubstr("a.json"), HasSubstr("{ds_config}"), HasSubstr("--ds-config a.json")));
  write_text(dir() / "run.sh", "#!/bin/bash\ndeepspeed t.py \\\n  --deepspeed_config conf/a.json \"$@\"\n");
  EXPECT_THAT(why_not({"env", "bash", "run.sh"}),
              AllOf(HasSubstr("run.sh"), HasSubstr("\"$DSAT_DS_CONFIG\""), HasSubstr("--ds-config conf/a.json")));
  write_text(dir() / "run.sh", "#!/bin/bash\ndeepspeed t.py --deepspeed_config $CONFIG\n");
  EXPECT_THAT(why_not({"env", "bash", "run.sh"}), Not(HasSubstr("run.sh")));
}

TEST_F(CommandForms, FollowingThatAdviceGivesACommand) {
  request_.ds_config = "a.json";
  EXPECT_THAT(render({"env", "bash", "-c", "deepspeed t.py --deepspeed_config={ds_config}"}),
              Contains("deepspeed t.py --deepspeed_config=/t/ds_config.json"));
  write_text(dir() / "run.sh", "#!/bin/bash\ndeepspeed t.py --deepspeed_config \"$DSAT_DS_CONFIG\"\n");
  EXPECT_NO_THROW(parse({"env", "bash", "run.sh"}));
}

TEST_F(CommandForms, AMissingScriptBehindALauncherIsFound) {
  const auto problem = [&](const Argv& argv) { return missing_script(argv, dir(), {}); };
  for (const Argv& argv :
       {Argv{"deepspeed", "--num_gpus", "2", "none.py"}, Argv{"torchrun", "none.py"},
        Argv{"env", "A=1", "python3", "-u", "none.py"}, Argv{"A=1", "accelerate", "launch", "none.py"},
        Argv{"python3", "-m", "torch.distributed.run", "--nproc_per_node=2", "none.py"}}) {
    EXPECT_THAT(problem(argv), HasSubstr("no script 'none.py'")) << argv[0];
  }
  for (const Argv& argv :
       {Argv{"deepspeed", "t.py", "none.py"}, Argv{"deepspeed", "--module", "none.py"},
        Argv{"torchrun", "-m", "none.py"}, Argv{"deepspeed", "--no_python", "none.py"},
        Argv{"apptainer", "exec", "i.sif", "torchrun", "none.py"}, Argv{"python3", "-m", "none.py"},
        Argv{"srun", "torchrun", "none.py"}, Argv{"deepspeed", "{trial_dir}/none.py"}, Argv{"env"}}) {
    EXPECT_EQ(problem(argv), "") << argv[0];
  }
}

TEST_F(CommandForms, AFileInTheScriptsPlaceIsFound) {
  write_text(dir() / "hosts", "a slots=1\n");
  EXPECT_THAT(missing_script({"deepspeed", "hosts", "t.py"}, dir(), {}),
              AllOf(HasSubstr("would run 'hosts'"), HasSubstr("--hostfile hosts")));
  EXPECT_THAT(missing_script({"deepspeed", "/job/none", "t.py"}, dir(), {}), HasSubstr("would run '/job/none'"));
  EXPECT_EQ(missing_script({"deepspeed", "word", "t.py"}, dir(), {}), "");
}

TEST_F(CommandForms, TorchrunStartsOneProcessIfNobodySaysHowMany) {
  const auto is_one = [&](Argv argv) {
    argv.insert(argv.end(), {"t.py", "--deepspeed_config", "a.json"});
    return parse(std::move(argv)).starts_one_process();
  };
  EXPECT_TRUE(is_one({"torchrun"}));
  EXPECT_TRUE(is_one({"python3", "-m", "torch.distributed.launch"}));
  EXPECT_FALSE(is_one({"torchrun", "--nproc_per_node", "gpu"}));
  EXPECT_FALSE(is_one({"srun", "torchrun"}));
  EXPECT_FALSE(is_one({"python3"}));
}

TEST_F(CommandForms, AutoBatchSizesProveTheTrainer) {
  const Json trial = {{"train_micro_batch_size_per_gpu", 4}, {"gradient_accumulation_steps", 2}};
  CommandTemplate command = parse({"python3", "t.py", "--deepspeed", "a.json", "--bs", "1"});
  const TrialContext context{"/t/ds_config.json", "/t", {{"0", 0, {}}}, 29500, trial};
  EXPECT_THAT(command.render(context), Not(Contains("--per_device_train_batch_size")));
  command.learn_from({{"train_micro_batch_size_per_gpu", "auto"}});
  EXPECT_THAT(command.render(context),
              AllOf(Contains("--per_device_train_batch_size"), Contains("--gradient_accumulation_steps")));
  command.map_arguments({{"train_micro_batch_size_per_gpu", "--bs"}});
  EXPECT_THAT(command.render(context), Not(Contains("--per_device_train_batch_size"))) << "another flag is mapped";
  write_program(dir() / "mine", "#!/bin/sh\n");
  CommandTemplate program = parse({"mine", "sft", "--deepspeed", "a.json", "--output_dir", "o"});
  EXPECT_THAT(program.render(context), Not(Contains("--per_device_train_batch_size"))) << "no script of the Trainer's";
}

}  // namespace
}  // namespace dsat::host
