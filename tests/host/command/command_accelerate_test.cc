// The user's command below accelerate: its own options, and its settings file, which may name a configuration too.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "command_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_THAT(render({"accelerate", "launch", "--use_deepspeed", "--deepspeed_config_file", "a.json", "t.py"}),
              ElementsAre("accelerate", "launch", "--main_process_port", "29500", "--use_deepspeed",
                          "--deepspeed_config_file", "/t/ds_config.json", "t.py"));
  EXPECT_THAT(
      render({"accelerate", "launch", "--use_deepspeed", "--deepspeed_config_file", "a.json", "t.py",
              "--deepspeed_config=a.json"}),
      ElementsAre("accelerate", "launch", "--main_process_port", "29500", "--use_deepspeed", "--deepspeed_config_file",
                  "/t/ds_config.json", "t.py", "--deepspeed_config=/t/ds_config.json"))
      << "the launcher and the script read one file";
  EXPECT_THAT(why_not({"accelerate", "launch", "--deepspeed_config_file", "a.json", "t.py"}),
              HasSubstr("add --use_deepspeed"))
      << "without it accelerate ignores the file";
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

TEST_F(Command, TheErrorNamesAcceleratesOwnFlagForTheConfiguration) {
  EXPECT_THAT(why_not({"accelerate", "launch", "t.py"}), HasSubstr("--deepspeed_config_file FILE"));
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
  EXPECT_EQ(command.files(trial)[0].text,
            head + "deepspeed_config_file: \"/t/ds_config.json\"\n  zero3_init_flag: true\n");
  EXPECT_THAT(command.render_best(Json::object(), "/s/best_ds_config.json"),
              ElementsAre("accelerate", "launch", "--config_file", "/s/best_accelerate_config.yaml", "t.py"));
  EXPECT_THAT(command.best_files(Json::object(), "/s/best_ds_config.json")[0].text,
              HasSubstr("\"/s/best_ds_config.json\""));
}

TEST_F(Command, AcceleratesSettingsAreChangedInEveryFormOrRefused) {
  const auto changed = [&](const std::string& text) {
    write_text(dir() / "acc.yaml", text);
    const TrialContext trial{"/t\\/c.json", "/t", {{"0", 0, {}}}, 29500, Json::object()};
    const auto files =
        parse({"accelerate", "launch", "--config_file", "acc.yaml", "t.py", "--deepspeed_config=a.json"}).files(trial);
    return files.empty() ? "" : files[0].text;
  };
  EXPECT_EQ(Json::parse(changed("{\"deepspeed_config\": {\"deepspeed_config_file\": \"a.json\", \"x\": 3}}")),
            Json::parse(R"({"deepspeed_config": {"deepspeed_config_file": "/t\\/c.json", "x": 3}})"));
  EXPECT_EQ(changed("deepspeed_config: {deepspeed_config_file: 'a.json'}\nuse_cpu: no\n"),
            "deepspeed_config:\n  deepspeed_config_file: \"/t\\\\/c.json\"\nuse_cpu: no\n");
  EXPECT_EQ(changed("deepspeed_config:\n  deepspeed_config_file:\n  zero_stage: 2\n"),
            "deepspeed_config:\n  deepspeed_config_file: \"/t\\\\/c.json\"\n  zero_stage: 2\n");
  EXPECT_EQ(changed("deepspeed_config:\n  zero_stage: 2\n"), "") << "the option does";
  EXPECT_EQ(changed("deepspeed_config:\n  deepspeed_config_file: |-\n    a.json\n"),
            "deepspeed_config:\n  deepspeed_config_file: \"/t\\\\/c.json\"\n");
  EXPECT_EQ(changed("d: &d {deepspeed_config_file: a.json}\ndeepspeed_config: *d\n"),
            "d: &d {deepspeed_config_file: a.json}\n"
            "deepspeed_config:\n  deepspeed_config_file: \"/t\\\\/c.json\"\n");
}

// As DeepSpeedPlugin of accelerate 1.15.0.dev0.
TEST_F(Command, AcceleratesFieldsBecomeTheConfigurationThatItsPluginBuilds) {
  const auto built = [&](const std::string& fields, Argv options = {}) {
    write_text(dir() / "acc.yaml", "distributed_type: DEEPSPEED\n" + fields);
    Argv argv{"accelerate", "launch", "--config_file", "acc.yaml"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back("t.py");
    return parse(argv).config_in_place();
  };
  Json config = Json::parse(R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
      "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "zero_optimization": {"stage": 2}})");
  EXPECT_EQ(built(""), config) << "accelerate's own default";
  EXPECT_EQ(built("mixed_precision: 'no'\ndeepspeed_config:\n  offload_param_device: none\n  zero_stage: 2\n"), config);
  config["zero_optimization"] = Json::parse(
      R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/N"}, "offload_param": {"device": "cpu"},
          "stage3_gather_16bit_weights_on_model_save": true})");
  config["gradient_accumulation_steps"] = 4;
  config["gradient_clipping"] = 1.5;
  config["bf16"] = {{"enabled", true}};
  EXPECT_EQ(built("mixed_precision: bf16\ndeepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: NVMe\n"
                  "  offload_optimizer_nvme_path: /N\n  offload_param_device: cpu\n  gradient_clipping: 1.5\n"
                  "  zero3_save_16bit_model: true\n  gradient_accumulation_steps: 2\n",
                  {"--zero_stage=3", "--gradient_accumulation_steps", "4"}),
            config)
      << "an option goes before a field";
  EXPECT_EQ(built("mixed_precision: fp8\n")["bf16"], Json::parse(R"({"enabled": true})"));
  EXPECT_EQ(built("mixed_precision: bf16\n", {"--mixed_precision", "fp16"})["fp16"]["enabled"], true);
}

TEST_F(Command, FieldsBecomeAFileInTheTrialsSettings) {
  write_text(dir() / "acc.yaml",
             "distributed_type: DEEPSPEED\nmixed_precision: fp8\ndeepspeed_config:\n  zero_stage: 3\n"
             "  zero3_init_flag: false\n  deepspeed_moe_layer_cls_names: Block\n");
  const CommandTemplate command = parse({"accelerate", "launch", "--config_file=acc.yaml", "t.py"});
  const TrialContext trial{"/t/ds_config.json", "/t", {{"0", 0, {}}}, 29500, Json::object()};
  EXPECT_EQ(command.files(trial)[0].text,
            "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero3_init_flag: false\n"
            "  deepspeed_moe_layer_cls_names: Block\n  deepspeed_config_file: \"/t/ds_config.json\"\n");
  EXPECT_THAT(command.render(trial), ElementsAre("accelerate", "launch", "--config_file", "/t/accelerate_config.yaml",
                                                 "--main_process_port", "29500", "--mixed_precision", "fp8", "t.py"));
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

// It would make CUDA_VISIBLE_DEVICES of them, by which HIP counts what ROCm's variable has left.
TEST_F(Command, AccelerateTakesAllDevicesThatRocmsVariableLeaves) {
  TrialContext trial{"/1/ds.json", "/1", {{"2", 2, {}}, {"3", 3, {}}}, 29500, Json::object()};
  trial.backend = Backend::rocr;
  const Argv argv = parse({"accelerate", "launch", "t.py", "--deepspeed_config=a.json"}).render(trial);
  const auto ids = std::find(argv.begin(), argv.end(), "--gpu_ids");
  ASSERT_NE(ids, argv.end());
  EXPECT_EQ(*std::next(ids), "all");
}

}  // namespace
}  // namespace dsat::host
