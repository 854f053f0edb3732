// What the launcher in the user's command gets for one trial and for the best configuration: ports, slots, hosts and
// sizes; and what its own arguments say of them.
#include <gmock/gmock.h>

#include <algorithm>

#include "command_fixture.h"
#include "dsat/host/command.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

// It would look there for "localhost", and for whatever else the trial has.
TEST_F(Command, ATrialOfThisMachineReadsNoHostfileOfTheLaunchersOwn) {
  request_.default_hostfile = dir() / "hostfile";
  const Argv command{"deepspeed", "--num_gpus=2", "t.py", "--deepspeed_config=a.json"};
  EXPECT_THAT(render(command), Not(Contains("--hostfile")));
  write_text(dir() / "hostfile", "worker-0 slots=8\n");
  EXPECT_THAT(render(command),
              ElementsAre("deepspeed", "--master_port", "29500", "--hostfile", "/dev/null", "--include",
                          "localhost:0,2", "t.py", "--deepspeed_config=/t/ds_config.json"));
  TrialContext trial{"/t/ds_config.json", "/t", {{"0", 0, {}}}, 29500, Json::object()};
  trial.allocation_nodes = 1;
  trial.has_bound_devices = true;
  EXPECT_THAT(parse(command).render(trial), ElementsAre("deepspeed", "--master_port", "29500", "--hostfile",
                                                        "/dev/null", "t.py", "--deepspeed_config=/t/ds_config.json"));
  const CommandTemplate::Size slot_two{TrialShape::even(1, 1), {}, {{"2", 2, {}}}};
  EXPECT_THAT(parse(command).render_best(Json::object(), "/b.json", slot_two),
              ElementsAre("deepspeed", "--hostfile", "/dev/null", "--include", "localhost:2", "t.py",
                          "--deepspeed_config=/b.json"));
  EXPECT_THAT(parse(command).render_best(Json::object(), "/b.json"), Not(Contains("/dev/null"))) << "it is the user's";
}

TEST_F(Command, EachRanksLogGoesToTheTrialsFolder) {
  const std::string folder = "/t/rank_logs";
  EXPECT_THAT(render({"deepspeed", "--enable_each_rank_log", "logs", "t.py", "--deepspeed_config", "a.json"}),
              ElementsAre("deepspeed", "--enable_each_rank_log", folder, "--master_port", "29500", "--include",
                          "localhost:0,2", "t.py", "--deepspeed_config", "/t/ds_config.json"))
      << "the option takes a value: the script is not it";
  EXPECT_THAT(render({"deepspeed", "--enable_each_rank_log=None", "t.py", "--deepspeed_config", "a.json"}),
              Not(Contains(folder)));
  EXPECT_THAT(render({"torchrun", "-r", "3", "--log_dir=logs", "t.py", "--deepspeed_config", "a.json"}),
              ElementsAre("torchrun", "--log_dir", folder, "--master_port", "29500", "-r", "3", "t.py",
                          "--deepspeed_config", "/t/ds_config.json"));
  EXPECT_THAT(render({"torchrun", "--tee", "3", "t.py", "-r", "1", "--deepspeed_config", "a.json"}), Contains(folder));
  EXPECT_THAT(render({"torchrun", "--log-dir", "logs", "t.py", "--tee", "--deepspeed_config", "a.json"}),
              AllOf(Not(Contains(folder)), Contains("logs")))
      << "without a redirection torchrun writes nothing there";
  EXPECT_TRUE(parse({"torchrun", "--redirects=1", "t.py", "--deepspeed_config", "a.json"}).has_rank_logs());
  EXPECT_FALSE(parse({"torchrun", "t.py", "-r", "1", "--deepspeed_config", "a.json"}).has_rank_logs());
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

TEST_F(Command, GivesTorchrunsRendezvousTheTrialsPort) {
  const auto options = [&](Argv given) {
    given.insert(given.begin(), "torchrun");
    given.insert(given.end(), {"t.py", "--deepspeed_config=a.json"});
    Argv argv = render(given);
    argv.resize(argv.size() - 2);
    argv.erase(argv.begin());
    return argv;
  };
  const auto own = ElementsAre("--master_port", "29500", "--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:29500",
                               "--rdzv_id", "29500");
  EXPECT_THAT(options({"--rdzv_backend", "c10d", "--rdzv_endpoint=localhost:29400"}), own);
  EXPECT_THAT(options({"--rdzv-backend=c10d", "--rdzv_id", "7"}), own) << "trials side by side are not one job";
  EXPECT_THAT(options({"--standalone"}), own);
  EXPECT_THAT(options({"--standalone", "--max_restarts", "3"}), AllOf(Contains("--max_restarts"), Contains("3")));
  EXPECT_THAT(options({"--rdzv_endpoint", "w1:29400"}), Contains("w1:29500"));
  EXPECT_THAT(options({"--rdzv_backend", "etcd-v2", "--rdzv_endpoint", "etcd:2379", "--rdzv_id=7"}),
              ElementsAre("--master_port", "29500", "--rdzv_backend", "etcd-v2", "--rdzv_endpoint", "etcd:2379",
                          "--rdzv_id", "29500"))
      << "the port is the server's";
}

TEST_F(Command, TheDeepspeedLauncherCountsDevicesOfRocmAmongTheVisibleOnes) {
  const CommandTemplate command = parse({"deepspeed", "t.py", "--deepspeed_config=a.json"});
  TrialContext trial{"/t/ds_config.json", "/t", {{"2", 2, {}}, {"3", 3, {}}}, 29500, Json::object()};
  for (const Backend backend : {Backend::hip, Backend::rocr}) {
    trial.backend = backend;
    EXPECT_THAT(command.render(trial), Contains("localhost:0,1"));
  }
  trial.backend = Backend::cuda;
  EXPECT_THAT(command.render(trial), Contains("localhost:2,3"));
}

TEST_F(Command, FindsALauncherBelowSrunAndMpirun) {
  EXPECT_THAT(render({"srun", "-N", "1", "--label", "-l", "--mpi=none", "torchrun", "--nproc_per_node", "2", "t.py",
                      "--deepspeed_config=a.json"}),
              ElementsAre("srun", "-N", "1", "--label", "-l", "--mpi=none", "torchrun", "--master_port", "29500",
                          "--nproc_per_node", "2", "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_EQ(parse({"srun", "-J", "deepspeed", "python3", "t.py", "--deepspeed_config=a.json"}).launcher(),
            Launcher::none)
      << "a job's name is no launcher";
  EXPECT_EQ(parse({"srun", "-n4", "env", "A=1", "python3", "-m", "torch.distributed.run", "t.py",
                   "--deepspeed_config=a.json"})
                .launcher(),
            Launcher::torchrun);
}

TEST_F(Command, NamesHostsToTheDeepspeedLauncher) {
  const CommandTemplate command =
      parse({"deepspeed", "--hostfile", "mine", "--master_addr", "x", "t.py", "--deepspeed_config=a.json"});
  TrialContext trial{"/t/ds_config.json", "/t", {}, 29500, Json::object()};
  trial.hostfile = "/hosts";
  trial.slots = {{"0", 0, {}, "w1"}, {"1", 1, {}, "w1"}, {"3", 3, {}, "w2"}};
  EXPECT_THAT(command.render(trial),
              ElementsAre("deepspeed", "--master_port", "29500", "--hostfile", "/hosts", "--include", "w1:0,1@w2:3",
                          "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_TRUE(command.files(trial).empty());
  trial.slots = {{"3", 3, {}, "w2"}};
  EXPECT_THAT(command.render(trial), Contains("--force_multi")) << "or it would run here, not there";
  trial.slots = {{"3", 3, {}, "localhost"}};
  EXPECT_THAT(command.render(trial), Not(Contains("--force_multi")));
}

// mpirun and srun take every slot of the hostfile, and the launcher refuses --include beside them.
TEST_F(Command, GivesTheDeepspeedLauncherBelowMpiAHostfileOfTheTrial) {
  const CommandTemplate command =
      parse({"deepspeed", "-H", "mine", "--num_gpus=2", "--launcher", "OpenMPI", "t.py", "--deepspeed_config=a.json"});
  TrialContext trial{"/t/ds_config.json", "/t", {}, 29500, Json::object()};
  trial.hostfile = "/hosts";
  trial.slots = {{"0", 0, {}, "w1"}, {"1", 1, {}, "w1"}, {"0", 0, {}, "w2"}};
  EXPECT_THAT(command.render(trial),
              ElementsAre("deepspeed", "--hostfile", "/t/hostfile", "--master_port", "29500", "--launcher", "OpenMPI",
                          "t.py", "--deepspeed_config=/t/ds_config.json"));
  ASSERT_EQ(command.files(trial).size(), 1u);
  EXPECT_EQ(command.files(trial)[0].name, "hostfile");
  EXPECT_EQ(command.files(trial)[0].text, "w1 slots=2\nw2 slots=1\n");
  const CommandTemplate::Size size{TrialShape{{2, 1}}, "/hosts", trial.slots};
  EXPECT_THAT(command.render_best(Json::object(), "/s/best.json", size),
              ElementsAre("deepspeed", "--hostfile", "/s/best_hostfile", "--launcher", "OpenMPI", "t.py",
                          "--deepspeed_config=/s/best.json"));
  EXPECT_EQ(command.best_files(Json::object(), "/s/best.json", size)[0].text, "w1 slots=2\nw2 slots=1\n");
}

TEST_F(Command, TellsEachLauncherATunedSize) {
  const auto with_world = [&](Argv argv, int gpus) {
    argv.push_back("--deepspeed_config=a.json");
    TrialContext trial{"/t/ds_config.json", "/t", {}, 29500, Json::object()};
    trial.config = {{"autotuning", {{"num_gpus", gpus}, {"num_nodes", 1}}}};
    return parse(std::move(argv)).render(trial);
  };
  EXPECT_THAT(with_world({"torchrun", "--nproc_per_node=8", "t.py"}, 2),
              ElementsAre("torchrun", "--nproc_per_node", "2", "--master_port", "29500", "t.py",
                          "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(with_world({"accelerate", "launch", "t.py"}, 4), Contains("--num_processes"));
  EXPECT_THAT(with_world({"python3", "t.py", "--ranks", "8"}, 4),
              ElementsAre("python3", "t.py", "--ranks", "4", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(with_world({"srun", "-n", "8", "python3", "t.py"}, 4),
              ElementsAre("srun", "-n", "4", "python3", "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_FALSE(parse({"python3", "t.py", "--deepspeed_config=a.json"}).takes_a_size());
}

// As the best command has it: a trial of another size would measure something else.
TEST_F(Command, ATrialHasTheSizeThatDsatWasGivenInPlaceOfTheCommands) {
  const auto of_two = [&](Argv argv, Backend backend = Backend::none) {
    argv.push_back("--deepspeed_config=a.json");
    TrialContext trial{"/t/ds_config.json", "/t", {{"0", 0, {}}, {"1", 1, {}}}, 29500, Json::object()};
    trial.backend = backend;
    trial.size_is_ours = true;
    return parse(std::move(argv)).render(trial);
  };
  EXPECT_THAT(of_two({"torchrun", "--nproc_per_node", "4", "t.py"}),
              ElementsAre("torchrun", "--nproc_per_node", "2", "--master_port", "29500", "t.py",
                          "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(of_two({"torchrun", "t.py"}), AllOf(Contains("--nproc_per_node"), Contains("2")));
  EXPECT_THAT(of_two({"accelerate", "launch", "--num_processes", "4", "t.py"}, Backend::cuda),
              ElementsAre("accelerate", "launch", "--num_processes", "2", "--main_process_port", "29500", "--gpu_ids",
                          "0,1", "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(of_two({"srun", "-n", "4", "python3", "t.py"}),
              ElementsAre("srun", "-n", "2", "python3", "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(of_two({"python3", "t.py", "--ranks=4"}), Contains("--ranks=2"));
  EXPECT_THAT(of_two({"python3", "t.py", "--num_gpus", "4"}), AllOf(Contains("2"), Not(Contains("4"))));
  EXPECT_THAT(of_two({"python3", "t.py"}), ElementsAre("python3", "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(of_two({"deepspeed", "--num_gpus", "4", "t.py"}), Contains("localhost:0,1"));
  EXPECT_THAT(render({"torchrun", "--nproc_per_node", "4", "t.py", "--deepspeed_config=a.json"}), Contains("4"))
      << "the command's own size stands";
}

// It asks for as many in all, or divides them among nodes and tasks in a way of its own.
TEST_F(Command, ACommandThatSpreadsItsProcessesItselfKeepsItsNumbers) {
  for (Argv argv : {Argv{"srun", "-N", "2", "torchrun", "--nproc_per_node", "2", "t.py"},
                    Argv{"torchrun", "--nnodes", "2", "--nproc_per_node", "2", "t.py"},
                    Argv{"torchrun", "--nnodes", "2", "--nproc_per_node", "8", "t.py"},
                    Argv{"srun", "-N", "2", "--ntasks-per-node", "2", "python3", "t.py", "--num_gpus", "2"},
                    Argv{"srun", "-n", "1", "bash", "run.sh"}}) {
    argv.push_back("--deepspeed_config=a.json");
    TrialContext trial{"/t/ds_config.json", "/t", {}, 29500, Json::object()};
    for (const int device : {0, 1, 2, 3}) trial.slots.push_back({std::to_string(device), device, {}});
    trial.size_is_ours = true;
    const Argv rendered = parse(argv).render(trial);
    for (const char* number : {"1", "2", "8"}) {
      EXPECT_EQ(std::count(rendered.begin(), rendered.end(), number), std::count(argv.begin(), argv.end(), number))
          << ::testing::PrintToString(rendered);
    }
  }
}

TEST_F(Command, ATrialOfSeveralNodesHasItsCountOfEachNode) {
  TrialContext trial{"/t/ds_config.json", "/t", {}, 29500, Json::object()};
  for (const char* node : {"n1", "n2"}) {
    trial.slots.push_back({"0", 0, {}, node});
    trial.slots.push_back({"1", 1, {}, node});
  }
  trial.allocation_nodes = 2;
  trial.size_is_ours = true;
  const Argv argv = parse({"torchrun", "--nproc_per_node=8", "t.py", "--deepspeed_config=a.json"}).render(trial);
  EXPECT_THAT(argv, AllOf(Contains("--nproc_per_node"), Not(Contains("4")), Not(Contains("8"))));
}

TEST_F(Command, ABestCommandOfThisMachineAloneKeepsOtherHostsOut) {
  request_.default_hostfile = dir() / "hostfile";
  write_text(dir() / "hostfile", "worker-0 slots=8\n");
  const CommandTemplate::Size two{TrialShape::even(1, 2)};
  EXPECT_THAT(
      parse({"deepspeed", "--hostfile", "/dev/null", "t.py", "--deepspeed_config=a.json"})
          .render_best(Json::object(), "/b.json", two),
      ElementsAre("deepspeed", "--hostfile", "/dev/null", "--num_gpus", "2", "t.py", "--deepspeed_config=/b.json"));
  EXPECT_THAT(
      parse({"deepspeed", "t.py", "--deepspeed_config=a.json"}).render_best(Json::object(), "/b.json", two),
      ElementsAre("deepspeed", "--hostfile", "/dev/null", "--num_gpus", "2", "t.py", "--deepspeed_config=/b.json"))
      << "dsat-host --hostfile /dev/null";
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
  EXPECT_EQ(slots({"torchrun", "--nproc-per-node=4", "t.py"}), 4);
  EXPECT_EQ(slots({"torchrun", "--nproc_per_node", "gpu", "t.py"}), std::nullopt);
  EXPECT_EQ(slots({"torchrun", "--nnodes=2", "--nproc-per-node=4", "t.py"}), 8);
  EXPECT_EQ(slots({"srun", "-N", "3", "torchrun", "--nproc-per-node=4", "t.py"}), 12);
  EXPECT_EQ(slots({"srun", "--nodes=2", "--ntasks-per-node=4", "python3", "t.py"}), 8);
  EXPECT_EQ(slots({"srun", "-n4", "python3", "t.py", "-n", "7"}), 4);
  EXPECT_EQ(slots({"accelerate", "launch", "--num_processes", "6", "t.py", "--num_processes", "1"}), 6);
  EXPECT_EQ(slots({"python3", "--ranks", "2"}), 2);
  EXPECT_EQ(slots({"srun", "-n", "16", "python3"}), 16);
  const LauncherResources parsed =
      parse({"deepspeed", "-H", "hosts", "--num_nodes=-1", "-i", "w1", "t.py", "--deepspeed_config=a"}).resources();
  EXPECT_EQ(parse({"deepspeed", "--num_gpus", "8", "t.py", "--deepspeed_config=a"}).resources().num_gpus, 8);
  EXPECT_EQ(parsed.num_nodes, std::nullopt);
  EXPECT_EQ(parsed.hostfile, "hosts");
  EXPECT_EQ(parsed.include, "w1");
  EXPECT_EQ(slots({"python3", "-n", "16"}), std::nullopt);
}

TEST_F(Command, TheBestCommandSaysASizeThatTheCommandDoesNot) {
  CommandTemplate::Size size{TrialShape::even(1, 2)};
  const CommandTemplate command = parse({"deepspeed", "--num_gpus=8", "t.py", "--deepspeed_config=a.json"});
  EXPECT_THAT(command.render_best(Json::object(), "/b.json", size),
              ElementsAre("deepspeed", "--num_gpus", "2", "t.py", "--deepspeed_config=/b.json"));
  size.hostfile = "/hosts";
  EXPECT_THAT(command.render_best(Json::object(), "/b.json", size),
              ElementsAre("deepspeed", "--hostfile", "/hosts", "--num_gpus", "2", "--num_nodes", "1", "t.py",
                          "--deepspeed_config=/b.json"));
  size.slots = {{"1", 1, {}, "w1"}, {"2", 2, {}, "w1"}};
  EXPECT_THAT(
      command.render_best(Json::object(), "/b.json", size),
      ElementsAre("deepspeed", "--hostfile", "/hosts", "--include", "w1:1,2", "t.py", "--deepspeed_config=/b.json"));
  EXPECT_THAT(parse({"torchrun", "t.py", "--deepspeed_config=a.json"}).render_best(Json::object(), "/b.json", size),
              ElementsAre("torchrun", "--nproc_per_node", "2", "t.py", "--deepspeed_config=/b.json"));
}

// `--slots 8` beside it: the trials ran it as it is.
TEST_F(Command, TheBestCommandKeepsProcessesThatTheCommandSpreadsItself) {
  const CommandTemplate::Size size{TrialShape::even(1, 8)};
  for (const Argv& command :
       {Argv{"torchrun", "--nnodes", "2", "--nproc_per_node", "4", "t.py", "--deepspeed_config=/b.json"},
        Argv{"srun", "-N", "2", "torchrun", "--nproc_per_node", "4", "t.py", "--deepspeed_config=/b.json"},
        Argv{"python3", "t.py", "--deepspeed_config=/b.json", "--ranks", "8,16"}}) {
    Argv given = command;
    std::replace(given.begin(), given.end(), std::string("--deepspeed_config=/b.json"),
                 std::string("--deepspeed_config=a.json"));
    EXPECT_EQ(parse(given).render_best(Json::object(), "/b.json", size), command);
  }
}

TEST_F(Command, TheBestCommandOfSeveralNodesSaysHowMany) {
  const CommandTemplate::Size size{TrialShape::even(2, 4)};
  EXPECT_THAT(parse({"deepspeed", "t.py", "--deepspeed_config=a.json"}).render_best(Json::object(), "/b.json", size),
              ElementsAre("deepspeed", "--num_gpus", "4", "--num_nodes", "2", "t.py", "--deepspeed_config=/b.json"));
  EXPECT_THAT(parse({"torchrun", "--nnodes=1", "t.py", "--deepspeed_config=a.json"})
                  .render_best(Json::object(), "/b.json", size),
              ElementsAre("torchrun", "--nnodes", "2", "--nproc_per_node", "4", "t.py", "--deepspeed_config=/b.json"));
}

TEST_F(Command, RefusesDeepspeedsOwnTunerInATrial) {
  EXPECT_THAT(why_not({"deepspeed", "--num_gpus", "2", "--autotuning", "tune", "t.py", "--deepspeed", "a.json"}),
              HasSubstr("dsat-host --autotuning tune"));
  EXPECT_THAT(why_not({"env", "X=1", "deepspeed", "--autotuning=run", "t.py", "--deepspeed", "a.json"}),
              HasSubstr("dsat-host --autotuning tune"));
  EXPECT_NO_THROW(parse({"deepspeed", "t.py", "--autotuning", "mine", "--deepspeed", "a.json"}));
}

TEST_F(Command, DeepspeedsOtherNameForGpusIsReadAndReplaced) {
  const Argv argv{"deepspeed", "--num_accelerators", "2", "t.py", "--deepspeed_config", "a.json"};
  EXPECT_EQ(parse(argv).resources().num_gpus, 2);
  EXPECT_EQ(slots_of_command(argv), 2);
  EXPECT_THAT(render(argv), Not(Contains("--num_accelerators")));
}

}  // namespace
}  // namespace dsat::host
