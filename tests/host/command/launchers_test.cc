// Which launcher a command starts, behind whatever stands before it, and those that are out of reach.
#include "command/launchers.h"

#include <gmock/gmock.h>

#include "command/hidden_launcher.h"
#include "command/own_launchers.h"
#include "command/wrappers.h"
#include "support/temp_dir.h"

namespace dsat::host {
namespace {

// The words before its own arguments; empty: no launcher is found.
std::vector<std::string> head_of(const Argv& command, Launcher kind = Launcher::deepspeed) {
  const LauncherUse use = find_launcher(command);
  if (use.kind != kind) return {};
  return {command.begin(), command.begin() + static_cast<std::ptrdiff_t>(use.begin)};
}

TEST(Launchers, AreFoundBehindPythonsOwnOptions) {
  const Argv torchrun{"python3", "-W", "ignore", "-X", "dev", "-m", "torch.distributed.run", "t.py"};
  EXPECT_EQ(head_of(torchrun, Launcher::torchrun).size(), 7u);
  EXPECT_EQ(head_of({"python3", "-W", "ignore", "t.py"}, Launcher::none).size(), 0u);
}

TEST(Launchers, OfFrameworksAreMixedWithTheirOwnWords) {
  const Argv trl{"uv", "run", "trl", "sft", "--num_processes", "4", "--output_dir", "o"};
  EXPECT_EQ(head_of(trl, Launcher::accelerate).size(), 4u);
  EXPECT_EQ(command_slots(trl, find_launcher(trl)), 4);
  EXPECT_EQ(find_launcher({"trl", "chat"}).kind, Launcher::none);
  const Argv axolotl{"axolotl", "train", "c.yml", "--launcher", "torchrun", "--", "--nproc_per_node=2"};
  EXPECT_EQ(head_of(axolotl, Launcher::torchrun).size(), 3u);
  EXPECT_EQ(command_slots(axolotl, find_launcher(axolotl)), 2);
  EXPECT_EQ(head_of({"axolotl", "train", "c.yml"}, Launcher::accelerate).size(), 3u);
  EXPECT_EQ(find_launcher({"axolotl", "train", "c.yml", "--launcher=python"}).kind, Launcher::none);
  EXPECT_EQ(find_launcher({"axolotl", "preprocess", "c.yml"}).kind, Launcher::none);
}

TEST(Launchers, VariablesOfTorchrunCountForProgramsThatReadThem) {
  const auto slots = [](const Argv& argv) { return command_slots(argv, find_launcher(argv)); };
  EXPECT_EQ(slots({"env", "NPROC_PER_NODE=2", "swift", "sft"}), 2);
  EXPECT_EQ(slots({"NPROC_PER_NODE=3", "FORCE_TORCHRUN=1", "llamafactory-cli", "train", "x.yaml"}), 3);
  EXPECT_EQ(slots({"env", "NPROC_PER_NODE=2", "python3", "t.py"}), std::nullopt);
  EXPECT_EQ(processes_by_variables({"swift", "sft"}, {"NPROC_PER_NODE=4"}), 4);
  EXPECT_EQ(processes_by_variables({"swift", "sft"}, {}), 1);
  EXPECT_EQ(processes_by_variables({"llamafactory-cli", "train"}, {}), std::nullopt) << "all that it sees";
  Argv argv{"env", "MASTER_PORT=1", "llamafactory-cli", "train", "x.yaml"};
  apply_torchrun_variables(argv, 29501, {});
  EXPECT_EQ(argv, (Argv{"env", "FORCE_TORCHRUN=1", "env", "MASTER_PORT=29501", "llamafactory-cli", "train", "x.yaml"}));
  Argv set{"swift", "sft"};
  apply_torchrun_variables(set, 29501, {});
  EXPECT_EQ(set, (Argv{"swift", "sft"}));
}

TEST(Launchers, WordsOfOmegaConfAreFoundByTheirNames) {
  const Argv command{"t.py", "a.b=1", "+a.b=2", "++a.b=3", "+++a.b=4", "xa.b=5", "a.bc=6", "=", ""};
  const std::vector<FlagUse> uses = find_mapped(command, "a.b=");
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[2].read(command), "3");
  EXPECT_EQ(find_mapped({"t.py", "--a-b", "1"}, "--a_b").size(), 1u);
}

TEST(Launchers, DeepSpeedHasAShortNameToo) {
  EXPECT_EQ(find_launcher({"ds", "--num_gpus", "2", "t.py"}).kind, Launcher::deepspeed);
}

TEST(Launchers, AnOptionBehindASwitchIsFound) {
  const Argv command{"torchrun", "--standalone", "--rdzv_endpoint", "localhost:29400", "t.py"};
  EXPECT_EQ(find_flag(command, {"--standalone", "--rdzv_endpoint"}).size(), 2u);
}

TEST(Launchers, AVisibilityVariableOfTheCommandsOwnIsFound) {
  const auto own = [](const Argv& command) { return own_visibility(command, find_launcher(command)); };
  EXPECT_EQ(own({"env", "A=1", "CUDA_VISIBLE_DEVICES=2,3", "torchrun", "t.py"}), "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(own({"env", "HIP_VISIBLE_DEVICES=0", "python3", "t.py"}), "HIP_VISIBLE_DEVICES");
  EXPECT_EQ(own({"env", "CUDA_VISIBLE_DEVICES=", "python3", "t.py"}), "") << "no device at all";
  EXPECT_EQ(own({"env", "CUDA_VISIBLE_DEVICES=-1", "python3", "t.py"}), "");
  EXPECT_EQ(own({"env", "CUDA_VISIBLE_DEVICES=2,3", "deepspeed", "t.py"}), "") << "it is given --include";
  EXPECT_EQ(own({"python3", "t.py", "CUDA_VISIBLE_DEVICES=2,3"}), "") << "the script's own argument";
}

TEST(Launchers, AVisibilityVariableIsFoundAnywhereBeforeTheScript) {
  const auto own = [](const Argv& command) { return own_visibility(command, find_launcher(command)); };
  const std::string cuda = "CUDA_VISIBLE_DEVICES";
  for (const Argv& command :
       {Argv{"bash", "-c", "CUDA_VISIBLE_DEVICES=0 python3 train.py --deepspeed_config {ds_config}"},
        Argv{"bash", "-c", "cd src && export CUDA_VISIBLE_DEVICES='0,1'; python3 train.py"},
        Argv{"bash", "-c", "CUDA_VISIBLE_DEVICES=0 deepspeed t.py --master_port $MASTER_PORT"},
        Argv{"env", "-u", "FOO", "CUDA_VISIBLE_DEVICES=1", "python3", "t.py"},
        Argv{"timeout", "1h", "env", "CUDA_VISIBLE_DEVICES=1", "python3", "t.py"},
        Argv{"srun", "-n", "2", "--export=ALL,CUDA_VISIBLE_DEVICES=1", "python3", "t.py"},
        Argv{"python3", "-c", "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0'; import train"},
        Argv{"timeout", "1h", "env", "CUDA_VISIBLE_DEVICES=1", "torchrun", "--nproc_per_node=1", "t.py"}}) {
    EXPECT_EQ(own(command), cuda) << ::testing::PrintToString(command);
  }
  EXPECT_EQ(own({"bash", "-c", "ZE_AFFINITY_MASK=0.1 python3 t.py"}), "ZE_AFFINITY_MASK");
  for (const Argv& command :
       {Argv{"bash", "-c", "CUDA_VISIBLE_DEVICES= python3 t.py"},
        Argv{"bash", "-c", "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0} python3 t.py"},
        Argv{"bash", "-c", "[ -n \"$CUDA_VISIBLE_DEVICES\" ] || CUDA_VISIBLE_DEVICES=0; python3 t.py"},
        Argv{"bash", "-c", "if [ -z \"$X\" ]; then export CUDA_VISIBLE_DEVICES=0; fi; python3 t.py"},
        Argv{"bash", "-c", "echo $CUDA_VISIBLE_DEVICES; python3 t.py"},
        Argv{"/runs/CUDA_VISIBLE_DEVICES=0/python3", "t.py"},
        Argv{"python3", "t.py", "say CUDA_VISIBLE_DEVICES=0 to me"}, Argv{"./run.sh", "CUDA_VISIBLE_DEVICES=0"},
        Argv{"python3", "-m", "pkg.train", "say CUDA_VISIBLE_DEVICES=0 to me"},
        Argv{"torchrun", "-m", "pkg.train", "CUDA_VISIBLE_DEVICES=0"}}) {
    EXPECT_EQ(own(command), "") << ::testing::PrintToString(command);
  }
}

TEST(Launchers, ASwitchOfSrunDoesNotTakeTheLauncherForItsValue) {
  const auto ranks_behind = [](const Argv& options) {
    Argv command{"srun"};
    command.insert(command.end(), options.begin(), options.end());
    for (const char* word : {"torchrun", "--nproc_per_node", "2", "--master_port", "29501", "train.py"}) {
      command.emplace_back(word);
    }
    const LauncherUse use = find_launcher(command);
    return use.kind == Launcher::torchrun && use.begin == options.size() + 2 ? command_slots(command, use) : 0;
  };
  for (const Argv& options :
       {Argv{"--container-image=x", "--no-container-mount-home"}, Argv{"--container-image", "torchrun"},
        Argv{"--container-writable"}, Argv{"--propagate"}, Argv{"--propagate=STACK"}, Argv{"--resv-ports"},
        Argv{"--immediate"}, Argv{"--of-a-newer-srun"}, Argv{"--of-a-newer-srun", "value"}, Argv{"-q", "normal"},
        Argv{"-J", "deepspeed"}, Argv{"-p", "python"}, Argv{"--job-name", "torchrun"}}) {
    EXPECT_EQ(ranks_behind(options), 2) << ::testing::PrintToString(options);
  }
  EXPECT_EQ(find_launcher({"mpirun", "-q", "torchrun", "t.py"}).begin, 3u) << "quiet, of mpirun";
}

TEST(Launchers, AreFoundBehindProgramsThatRunACommand) {
  for (const Argv& head :
       {Argv{"uv", "run"}, Argv{"uv", "run", "--frozen"}, Argv{"uv", "run", "--with", "deepspeed"},
        Argv{"uv", "run", "-p", "python3.11"}, Argv{"conda", "run", "-n", "deepspeed"},
        Argv{"conda", "run", "--no-capture-output", "-n", "env"}, Argv{"poetry", "run"},
        Argv{"numactl", "--cpunodebind", "0", "-m", "0"}, Argv{"timeout", "-k", "10", "1h"},
        Argv{"singularity", "exec", "--nv", "-B", "/data:/data", "img.sif"}, Argv{"apptainer", "exec", "deepspeed"},
        Argv{"env", "-u", "A", "B=/opt/deepspeed"}, Argv{"nohup"}, Argv{"time", "-p"}, Argv{"stdbuf", "-oL"}}) {
    Argv command = head, launcher{"deepspeed", "--num_gpus", "2", "train.py", "deepspeed", "x.py"};
    command.insert(command.end(), launcher.begin(), launcher.end());
    Argv want = head;
    want.emplace_back("deepspeed");
    EXPECT_EQ(head_of(command), want) << head[0];
    EXPECT_EQ(find_launcher(command).end, want.size() + 2) << head[0];
  }
  EXPECT_EQ(head_of({"timeout", "1h", "torchrun", "--nproc-per-node=2", "-m", "pkg.train"}, Launcher::torchrun).size(),
            3u);
  EXPECT_EQ(head_of({"uv", "run", "-m", "torch.distributed.run", "t.py"}, Launcher::torchrun).size(), 4u);
  EXPECT_EQ(
      head_of({"conda", "run", "-n", "e", "python", "-m", "accelerate.commands.launch", "t.py"}, Launcher::accelerate)
          .size(),
      7u);
  EXPECT_EQ(head_of({"uv", "run", "accelerate", "launch", "t.py"}, Launcher::accelerate).size(), 4u);
}

TEST(Launchers, ASwitchTakesNoWordBehindIt) {
  const Argv launch{"accelerate", "launch"};
  for (const char* name :
       {"--dynamo_use_dynamic", "--dynamo-use-fullgraph", "--downcast_bf16", "--tpu-cluster", "--use-megatron-lm",
        "--fp8_use_autocast_during_eval", "--enable-cpu-affinity", "--use-xpu", "--use_parallelism_config"}) {
    Argv command = launch;
    command.insert(command.end(), {name, "--num_processes", "2", "-m", "pkg.train"});
    EXPECT_EQ(command_slots(command, find_launcher(command)), 2) << name;
    EXPECT_EQ(find_launcher(command).end, 6u) << name;
  }
  EXPECT_EQ(find_launcher({"accelerate", "launch", "--of_a_newer_version", "t.py", "x.py"}).end, 3u);
}

TEST(Launchers, AWordThatIsOnlyCalledLikeOneIsNone) {
  for (const Argv& command :
       {Argv{"uv", "run", "--with", "deepspeed", "python", "t.py"}, Argv{"uv", "run", "--with", "deepspeed", "t.py"},
        Argv{"conda", "run", "-n", "deepspeed", "python", "t.py"}, Argv{"python3", "t.py", "deepspeed", "x.py"},
        Argv{"python3", "-m", "pkg.train", "--strategy", "deepspeed", "x.py"},
        Argv{"mytool", "--strategy", "deepspeed"}, Argv{"mytool", "train", "deepspeed", "a.yaml"},
        Argv{"uv", "run", "t.py", "--strategy", "deepspeed"},
        Argv{"apptainer", "exec", "/images/deepspeed", "python3", "t.py"}, Argv{}}) {
    EXPECT_EQ(find_launcher(command).kind, Launcher::none) << ::testing::PrintToString(command);
  }
}

TEST(Launchers, SrunAndMpirunAreFoundBehindAndBeforeOtherPrograms) {
  const LauncherUse behind = find_launcher({"timeout", "1h", "mpirun", "-np", "4", "python3", "t.py"});
  EXPECT_EQ(behind.wrapper, 2u);
  EXPECT_EQ(behind.kind, Launcher::none);
  const LauncherUse before = find_launcher(
      {"srun", "-N", "2", "apptainer", "exec", "--nv", "i.sif", "torchrun", "--nproc_per_node=4", "t.py"});
  EXPECT_EQ(before.wrapper, 0u);
  EXPECT_EQ(before.kind, Launcher::torchrun);
  EXPECT_EQ(before.begin, 8u);
}

TEST(Launchers, OptionsOfMpirunWithTwoValuesAreNoProgram) {
  const auto processes = [](const Argv& command) { return command_slots(command, find_launcher(command)); };
  for (const Argv& options :
       {Argv{"--mca", "btl_tcp_if_include", "eth0"}, Argv{"-mca", "btl", "self"}, Argv{"-x", "A"}, Argv{"-x", "A=1"},
        Argv{"--gmca", "a", "b"}, Argv{"--bind-to", "none"}, Argv{"-bind-to", "core"}, Argv{"-map-by", "slot"},
        Argv{"-genv", "A", "1"}, Argv{"--pmixmca", "a", "b"}, Argv{"-oversubscribe"}, Argv{"--new-switch"},
        Argv{"-hosts", "a,b"}}) {
    Argv command{"mpirun"};
    command.insert(command.end(), options.begin(), options.end());
    for (const char* word : {"-np", "4", "python3", "t.py", "-np", "7"}) command.emplace_back(word);
    EXPECT_EQ(processes(command), 4) << options[0];
  }
  EXPECT_EQ(head_of({"mpirun", "--mca", "a", "b", "deepspeed", "t.py"}).size(), 5u);
}

TEST(Launchers, AProgramBehindAnOptionOfMpirunThatIsNotKnownIsNoValue) {
  for (const char* program : {"./train.py", "run.sh", "/opt/bin/python3.11", "torchrun", "bash"}) {
    EXPECT_EQ(end_of_wrapper_options({"mpirun", "--new-switch", program, "x"}, 0), 2u) << program;
  }
  EXPECT_EQ(end_of_wrapper_options({"mpirun", "--new-option", "fast", "x"}, 0), 3u);
}

class HiddenLauncher : public TempDirTest {};

TEST_F(HiddenLauncher, IsFoundInTheWordsAndScriptsOfAShell) {
  write_text(dir() / "run.sh",
             "#!/bin/bash\n# starts it\ncd src &&\n  torchrun --nproc_per_node 2 \\\n  train.py \"$@\"\n");
  write_text(dir() / "launch", "#!/usr/bin/env bash\nLAUNCHER=\"accelerate launch\"\n$LAUNCHER t.py\n");
  EXPECT_EQ(hidden_launcher({"bash", "-c", "cd x; exec deepspeed --num_gpus 2 t.py"}, dir()), "the words behind -c");
  EXPECT_EQ(hidden_launcher({"bash", "run.sh", "--deepspeed_config", "a.json"}, dir()), "run.sh");
  EXPECT_EQ(hidden_launcher({"./launch"}, dir()), "./launch");
  EXPECT_EQ(hidden_launcher({"timeout", "1h", "sh", (dir() / "run.sh").string()}, "/"), (dir() / "run.sh").string());
}

TEST_F(HiddenLauncher, APortOfItsOwnOrDevicesThatItPicksAreOutOfReach) {
  write_text(dir() / "port.sh", "export MASTER_PORT=29500\ntorchrun t.py\n");
  write_text(dir() / "picks.sh", "PORT=$MASTER_PORT\ndeepspeed --num_gpus 2 --master_port $PORT t.py\n");
  write_text(dir() / "ids.sh", "accelerate launch --main_process_port $MASTER_PORT --gpu_ids 0,1 t.py\n");
  write_text(dir() / "falls_back.sh", "MASTER_PORT=${MASTER_PORT:-29500}\ntorchrun --master_port $MASTER_PORT t.py\n");
  for (const char* script : {"port.sh", "picks.sh", "ids.sh"}) {
    EXPECT_EQ(hidden_launcher({"bash", script}, dir()), script);
  }
  EXPECT_EQ(hidden_launcher({"bash", "falls_back.sh"}, dir()), "");
}

TEST_F(HiddenLauncher, IsNoneWhereNothingStartsOneOrItFollowsTheTrial) {
  write_text(dir() / "plain.sh", "pip install deepspeed && conda activate deepspeed # deepspeed t.py\npython3 t.py\n");
  write_text(dir() / "own.sh", "torchrun --master_port $MASTER_PORT t.py\n");
  write_text(dir() / "t.py", "os.system('x')\n");
  for (const Argv& command :
       {Argv{"bash", "plain.sh"}, Argv{"bash", "own.sh"}, Argv{"python3", "t.py", "run deepspeed t.py"},
        Argv{"deepspeed", "t.py"}, Argv{"bash", "nonesuch.sh"}, Argv{"bash", "-c", ""}, Argv{}}) {
    EXPECT_EQ(hidden_launcher(command, dir()), "") << ::testing::PrintToString(command);
  }
}

}  // namespace
}  // namespace dsat::host
