// The user's command for one trial and for the best configuration: files, flags, launchers, sizes.
#include "command/command_template.h"

#include <gmock/gmock.h>

#include "dsat/host/command.h"
#include "dsat/host/study.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Command : public TempDirTest {
 protected:
  Command() {
    for (const char* name : {"python3", "deepspeed", "torchrun", "env", "srun", "accelerate"}) {
      write_program(dir() / name, "#!/bin/sh\n");
    }
    request_.cwd = dir();
    request_.environment = {"PATH=" + dir().string()};
  }

  CommandTemplate parse(Argv argv) {
    request_.argv = std::move(argv);
    return CommandTemplate(request_);
  }
  std::string why_not(Argv argv) {
    return error_of([&] { parse(std::move(argv)); });
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
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed", "config"}), HasSubstr("names no DeepSpeed configuration"));
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
  EXPECT_THAT(why_not({"python3", "t.py"}), HasSubstr("names no DeepSpeed configuration"));
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed"}), HasSubstr("names no DeepSpeed configuration"));
  EXPECT_THAT(why_not({"python3", "t.py", "{ds_config}"}), HasSubstr("names no DeepSpeed configuration"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config", "a.json", "--deepspeed_config=b.json"}),
              HasSubstr("more than one configuration (a.json and b.json)"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config"}), HasSubstr("ends at --deepspeed_config"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config="}), HasSubstr("empty"));
  request_.ds_config = "base.json";
  EXPECT_THAT(why_not({"python3", "t.py"}), HasSubstr("{ds_config}"));
  EXPECT_THAT(why_not({"python3", "--deepspeed_config", "other.json"}), HasSubstr("two configurations"));
}

TEST_F(Command, TheSameConfigurationTwiceIsOne) {
  request_.ds_config = dir() / "a.json";
  EXPECT_EQ(parse({"python3", "--deepspeed_config", "./a.json"}).config_file().lexically_normal(), dir() / "a.json");
}

TEST_F(Command, RefusesACommandThatCannotRun) {
  EXPECT_THAT(why_not({}), HasSubstr("no training command"));
  EXPECT_THAT(why_not({"nonesuch", "--deepspeed_config", "a.json"}), HasSubstr("'nonesuch' not found"));
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

TEST_F(Command, GivesAccelerateItsPortAndDevices) {
  const Argv command{"accelerate", "launch", "--use_deepspeed",          "--main_process_port",
                     "1",          "t.py",   "--deepspeed_config=a.json"};
  EXPECT_THAT(render(command), ElementsAre("accelerate", "launch", "--main_process_port", "29500", "--use_deepspeed",
                                           "t.py", "--deepspeed_config=/t/ds_config.json"));
  TrialContext trial{"/t/ds_config.json", "/t", {{"GPU-a", 0, {}}, {"GPU-b", 1, {}}}, 29500, Json::object()};
  trial.backend = Backend::cuda;
  EXPECT_THAT(parse(command).render(trial),
              ElementsAre("accelerate", "launch", "--main_process_port", "29500", "--gpu_ids", "GPU-a,GPU-b",
                          "--num_processes", "2", "--use_deepspeed", "t.py", "--deepspeed_config=/t/ds_config.json"));
  // Its own option for the configuration is one, too.
  EXPECT_THAT(render({"accelerate", "launch", "--num_processes=2", "--deepspeed_config_file", "a.json", "t.py"}),
              ElementsAre("accelerate", "launch", "--main_process_port", "29500", "--num_processes=2",
                          "--deepspeed_config_file", "/t/ds_config.json", "t.py"));
  EXPECT_EQ(parse({"python3", "-m", "accelerate.commands.launch", "t.py", "--deepspeed_config=a.json"}).launcher(),
            Launcher::accelerate);
}

TEST_F(Command, AcceleratesSettingsFileGivesTheNumberOfProcesses) {
  write_text(dir() / "acc.yaml", "distributed_type: DEEPSPEED\nnum_processes: 2\n");
  const Argv head{"accelerate", "launch", "--config_file", "acc.yaml"};
  const auto slots = [&](Argv more) {
    more.insert(more.begin(), head.begin(), head.end());
    more.insert(more.end(), {"t.py", "--deepspeed_config=a.json"});
    return parse(more).slots_per_trial();
  };
  EXPECT_EQ(slots({}), 2);
  EXPECT_EQ(slots({"--num_processes", "4"}), 4) << "its option goes first";
  for (const char* text : {"num_processes: many\n", "num_processes: 0\n", "num_processes: [\n", "- 2\n", ""}) {
    write_text(dir() / "acc.yaml", text);
    EXPECT_EQ(slots({}), std::nullopt) << text;
  }
  std::filesystem::remove(dir() / "acc.yaml");
  EXPECT_EQ(slots({}), std::nullopt);
}

TEST_F(Command, AccelerateIsToldOfItsOwnFlagForTheConfiguration) {
  EXPECT_THAT(why_not({"accelerate", "launch", "t.py"}), HasSubstr("--deepspeed_config_file FILE before the script"));
}

// Up to accelerate 1.1 its settings file goes before the options.
TEST_F(Command, ATrialsConfigurationStandsInACopyOfAcceleratesSettings) {
  const std::string head = "use_cpu: no\ndeepspeed_config:\n  ", tail = "  # mine\n  zero3_init_flag: true\n";
  write_text(dir() / "acc.yaml", head + "deepspeed_config_file: a b.json" + tail);
  const CommandTemplate command = parse({"accelerate", "launch", "--config_file=acc.yaml", "t.py"});
  EXPECT_EQ(command.config_file(), dir() / "a b.json");
  const TrialContext trial{"/t/ds_config.json", "/t", {{"0", 0, {}}}, 29500, Json::object()};
  EXPECT_THAT(command.render(trial), ElementsAre("accelerate", "launch", "--config_file", "/t/accelerate_config.yaml",
                                                 "--main_process_port", "29500", "t.py"));
  ASSERT_EQ(command.files(trial).size(), 1u);
  EXPECT_EQ(command.files(trial)[0].name, "accelerate_config.yaml");
  EXPECT_EQ(command.files(trial)[0].text, head + "deepspeed_config_file: \"/t/ds_config.json\"" + tail);
  EXPECT_THAT(command.render_best(Json::object(), "/s/best_ds_config.json"),
              ElementsAre("accelerate", "launch", "--config_file", "/s/best_accelerate_config.yaml", "t.py"));
  EXPECT_THAT(command.best_files("/s/best_ds_config.json")[0].text, HasSubstr("\"/s/best_ds_config.json\""));
}

TEST_F(Command, AcceleratesSettingsAreChangedInEveryFormOrRefused) {
  const auto changed = [&](const std::string& text) {
    write_text(dir() / "acc.yaml", text);
    const TrialContext trial{"/t\\/c.json", "/t", {{"0", 0, {}}}, 29500, Json::object()};
    const auto files =
        parse({"accelerate", "launch", "--config_file", "acc.yaml", "t.py", "--deepspeed_config=a.json"}).files(trial);
    return files.empty() ? "" : files[0].text;
  };
  EXPECT_EQ(changed("{\"deepspeed_config\": {\"deepspeed_config_file\": \"a.json\", \"zero_stage\": 3}}"),
            "{\"deepspeed_config\": {\"deepspeed_config_file\": \"/t\\\\/c.json\", \"zero_stage\": 3}}");
  EXPECT_EQ(changed("deepspeed_config: {deepspeed_config_file: 'a.json'}\n"),
            "deepspeed_config: {deepspeed_config_file: \"/t\\\\/c.json\"}\n");
  EXPECT_EQ(changed("deepspeed_config:\n  deepspeed_config_file:\n  zero_stage: 2\n"),
            "deepspeed_config:\n  deepspeed_config_file: \"/t\\\\/c.json\"\n  zero_stage: 2\n");
  EXPECT_EQ(changed("deepspeed_config:\n  zero_stage: 2\n"), "") << "the option does";
  EXPECT_THAT(error_of([&] { changed("deepspeed_config:\n  deepspeed_config_file: |-\n    a.json\n"); }),
              HasSubstr("acc.yaml:2:3: a trial needs another file there"));
}

TEST_F(Command, BelowASchedulerAccelerateTakesTheDevicesThatItSees) {
  write_text(dir() / "acc.yaml", "deepspeed_config:\n  deepspeed_multinode_launcher: pdsh\n");
  const CommandTemplate command = parse({"accelerate", "launch", "--config_file", "acc.yaml", "--same_network",
                                         "--gpu_ids=0", "t.py", "--deepspeed_config=a.json"});
  TrialContext trial{"/t/ds_config.json", "/t", {{"0", 0, {}}, {"1", 1, {}}}, 29500, Json::object()};
  trial.backend = Backend::cuda;
  trial.allocation_nodes = 1;
  trial.has_bound_devices = true;
  EXPECT_THAT(command.render(trial), ElementsAre("accelerate", "launch", "--main_process_port", "29500", "--gpu_ids",
                                                 "all", "--num_processes", "2", "--config_file", "acc.yaml",
                                                 "--same_network", "t.py", "--deepspeed_config=/t/ds_config.json"));
  trial.slots = {{"0", 0, {}, "n1"}, {"1", 1, {}, "n1"}, {"0", 0, {}, "n2"}, {"1", 1, {}, "n2"}};
  trial.allocation_nodes = 2;
  EXPECT_THAT(command.render(trial),
              ElementsAre("accelerate", "launch", "--config_file", "/t/accelerate_config.yaml", "--num_machines", "2",
                          "--machine_rank", "0", "--main_process_ip", "{first_node}", "--rdzv_backend", "c10d",
                          "--deepspeed_multinode_launcher", "standard", "--main_process_port", "29500", "--gpu_ids",
                          "all", "--num_processes", "4", "t.py", "--deepspeed_config=/t/ds_config.json"));
  EXPECT_THAT(command.files(trial)[0].text, HasSubstr("deepspeed_multinode_launcher: \"standard\""));
}

TEST_F(Command, AcceleratesOwnSettingsFileIsReadWhereNoneIsNamed) {
  const auto folder = dir() / "home/.cache/huggingface/accelerate";
  std::filesystem::create_directories(folder);
  write_text(folder / "default_config.yaml", "num_processes: 3\n");
  request_.environment.push_back("HOME=" + (dir() / "home").string());
  const Argv command{"accelerate", "launch", "t.py", "--deepspeed_config=a.json"};
  EXPECT_EQ(parse(command).slots_per_trial(), 3);
  EXPECT_EQ(parse({"accelerate", "launch", "--cpu", "t.py", "--deepspeed_config=a.json"}).slots_per_trial(),
            std::nullopt);
  request_.environment.back() = "XDG_CACHE_HOME=" + (dir() / "home/.cache").string();
  EXPECT_EQ(parse(command).slots_per_trial(), 3);
  request_.environment.push_back("HF_HOME=" + (dir() / "home").string());
  EXPECT_EQ(parse(command).slots_per_trial(), std::nullopt);
}

TEST_F(Command, TheBestCommandHasTheCountThatAcceleratesTrialsGot) {
  EXPECT_TRUE(parse({"accelerate", "launch", "t.py", "--deepspeed_config=a.json"}).gets_a_count(Backend::cuda));
  EXPECT_FALSE(parse({"accelerate", "launch", "t.py", "--deepspeed_config=a.json"}).gets_a_count(Backend::none));
  EXPECT_FALSE(parse({"accelerate", "launch", "--num_processes=2", "t.py", "--deepspeed_config=a.json"})
                   .gets_a_count(Backend::cuda));
  EXPECT_FALSE(parse({"torchrun", "t.py", "--deepspeed_config=a.json"}).gets_a_count(Backend::cuda));
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
  EXPECT_EQ(command.best_files("/s/best.json", size)[0].text, "w1 slots=2\nw2 slots=1\n");
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
  const LauncherResources said = parse({"deepspeed", "-H", "hosts", "--num_gpus", "8", "--num_nodes=-1", "-i", "w1",
                                        "t.py", "--deepspeed_config=a"})
                                     .resources();
  EXPECT_EQ(said.num_gpus, 8);
  EXPECT_EQ(said.num_nodes, std::nullopt);
  EXPECT_EQ(said.hostfile, "hosts");
  EXPECT_EQ(said.include, "w1");
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
  EXPECT_FALSE(parse({"python3", "--deepspeed_config=a.json"}).may_fill_in_auto());
  EXPECT_TRUE(parse({"python3", "--gradient_accumulation_steps=1", "--deepspeed_config=a.json"}).may_fill_in_auto());
  EXPECT_THAT(why_not({"python3", "--deepspeed=a.json", "--per_device_train_batch_size"}), HasSubstr("takes a value"));
}

TEST_F(Command, AutoMayBeFilledInByAccelerateAndByAScriptThatTakesTheFile) {
  EXPECT_TRUE(parse({"accelerate", "launch", "--deepspeed_config_file", "a.json", "t.py"}).may_fill_in_auto());
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
  EXPECT_THAT(why_not({"python3", "t.py", "--deepspeed_config", "a.json", "--bs"}), HasSubstr("takes a value"));
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

TEST_F(Command, TheBestCommandOfSeveralNodesSaysHowMany) {
  const CommandTemplate::Size size{TrialShape::even(2, 4)};
  EXPECT_THAT(parse({"deepspeed", "t.py", "--deepspeed_config=a.json"}).render_best(Json::object(), "/b.json", size),
              ElementsAre("deepspeed", "--num_gpus", "4", "--num_nodes", "2", "t.py", "--deepspeed_config=/b.json"));
  EXPECT_THAT(parse({"torchrun", "--nnodes=1", "t.py", "--deepspeed_config=a.json"})
                  .render_best(Json::object(), "/b.json", size),
              ElementsAre("torchrun", "--nnodes", "2", "--nproc_per_node", "4", "t.py", "--deepspeed_config=/b.json"));
}

// It would make CUDA_VISIBLE_DEVICES of them, by which HIP counts what ROCm's variable has left.
TEST_F(Command, AccelerateTakesAllDevicesThatRocmsVariableLeaves) {
  TrialContext trial{"/1/ds.json", "/1", {{"2", 2, {}}, {"3", 3, {}}}, 29500, Json::object()};
  trial.backend = Backend::rocr;
  const Argv argv = parse({"accelerate", "launch", "t.py", "--deepspeed_config=a.json"}).render(trial);
  const auto ids = std::find(argv.begin(), argv.end(), "--gpu_ids");
  ASSERT_NE(ids, argv.end());
  EXPECT_EQ(*std::next(ids), "all");
}

TEST_F(Command, TheBestCommandNamesTheBestConfigurationWhateverItIsCalledInATrial) {
  request_.ds_config = "base.json";
  const CommandTemplate command = parse({"python3", "{trial_dir}/ds_config.json", "--out={trial_dir}/out"});
  EXPECT_THAT(command.render_best(Json::object(), "/run/best_ds_config.json"),
              ElementsAre("python3", "/run/best_ds_config.json", "--out=/run/out"));
}

TEST_F(Command, RefusesDeepspeedsOwnTunerInATrial) {
  EXPECT_THAT(why_not({"deepspeed", "--num_gpus", "2", "--autotuning", "tune", "t.py", "--deepspeed", "a.json"}),
              HasSubstr("type dsat-host --autotuning tune"));
  EXPECT_THAT(why_not({"env", "X=1", "deepspeed", "--autotuning=run", "t.py", "--deepspeed", "a.json"}),
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

TEST_F(Command, DeepspeedsOtherNameForGpusIsReadAndReplaced) {
  const Argv argv{"deepspeed", "--num_accelerators", "2", "t.py", "--deepspeed_config", "a.json"};
  EXPECT_EQ(parse(argv).resources().num_gpus, 2);
  EXPECT_EQ(slots_of_command(argv), 2);
  EXPECT_THAT(render(argv), Not(Contains("--num_accelerators")));
}

TEST_F(Command, AGivenConfigurationNeedsAPlaceOrAScriptThatReadsTheVariable) {
  request_.ds_config = "base.json";
  write_text(dir() / "silent.py", "import dsatlike, mydsat\nprint('from dsa')\n");
  EXPECT_THAT(why_not({"python3", "silent.py"}), HasSubstr("read the environment's DSAT_DS_CONFIG in the script"));
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
