// The user's training command: finds its configuration, and makes an argument list for every trial.
// Threading: immutable once parsed. Errors: dsat::Error, one line, before anything runs. docs/trial.md has the rules.
#ifndef DSAT_HOST_COMMAND_COMMAND_TEMPLATE_H_
#define DSAT_HOST_COMMAND_COMMAND_TEMPLATE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command/accelerate_fields.h"
#include "command/accelerate_settings.h"
#include "command/command_args.h"
#include "command/environment_use.h"
#include "command/hidden_launcher.h"
#include "command/hugging_face.h"
#include "command/launchers.h"
#include "command/training_yaml.h"
#include "dsat/error.h"
#include "dsat/host/environment.h"
#include "slots/slots.h"

namespace dsat::host {

// The deepspeed launcher looks for a hostfile here by default.
inline constexpr const char* kDefaultHostfile = "/job/hostfile";
inline constexpr const char* kNoHostfile = "/dev/null";  // users of the launcher write this for no hostfile

struct CommandRequest {
  Argv argv;
  std::optional<std::filesystem::path> ds_config;                 // --ds-config
  std::vector<std::pair<std::string, std::string>> arg_mappings;  // dotted config key -> flag of the command
  std::filesystem::path cwd;                                      // absolute: where the command runs
  Environment environment;                                        // for PATH
  // The script may get its configuration from the environment. A file in ds_config then counts, even if the command
  // names another.
  bool config_by_environment = false;
  std::filesystem::path default_hostfile = kDefaultHostfile;
  // The hook in the script's processes merges the configuration over the script's own (docs/launchers.md).
  bool inject = false;
  bool may_lack_configuration = false;  // parts of the command may be all that is tuned
  // Keys that trials may change, if a training YAML has them.
  std::vector<std::string> tuned_keys{};
};

// Files for accelerate and deepspeed: in a trial's folder, and in the study's folder for the best command.
inline constexpr const char* kAccelerateFile = "accelerate_config.yaml";
inline constexpr const char* kBestAccelerateFile = "best_accelerate_config.yaml";
inline constexpr const char* kHostfile = "hostfile";
inline constexpr const char* kBestHostfile = "best_hostfile";

// The folder for each rank's output in a trial's folder, if the command writes such files.
inline constexpr const char* kRankLogFolder = "rank_logs";

// The values that differ between trials.
struct TrialContext {
  std::filesystem::path config_file, trial_dir;  // absolute
  std::vector<Slot> slots;
  uint16_t port = 0;
  Json config;                       // the trial's configuration; batch sizes are numbers
  std::filesystem::path hostfile{};  // for `deepspeed`; empty: all slots are on this machine
  Backend backend = Backend::none;
  // The number of nodes in a scheduler's allocation; 0: there is no scheduler. `hostfile` then has exactly these nodes.
  int allocation_nodes = 0;
  bool has_bound_devices = false;  // the scheduler has bound the devices; the launcher uses all that it sees
  bool size_is_ours = false;       // the command does not give the size, so the size is written into it
};

// A file in a trial's folder, or in the study's for the best command, with the launcher's option that names it; empty:
// a word of the command does.
struct CommandFile {
  std::string option, name, text;
};

// The hosts and slots in the deepspeed launcher's own arguments.
struct LauncherResources {
  std::string hostfile, include, exclude;  // empty: not given
  std::optional<int> num_gpus, num_nodes;
};

class CommandTemplate {
 public:
  // Checks that the program can be run and that there is exactly one configuration. Throws Error.
  explicit CommandTemplate(CommandRequest request);

  const Argv& argv() const { return request_.argv; }
  // The user's configuration file; absolute; empty: there is none. It may be unreadable.
  const std::filesystem::path& config_file() const { return config_file_; }
  // The training YAML that has tuned keys; empty: none has.
  std::string training_file() const {
    return training_yaml_ && !training_yaml_->tuned.empty() ? training_yaml_->file.filename().string() : "";
  }
  // Whether trials get a configuration that their script takes.
  bool has_configuration() const { return !config_file_.empty() || request_.inject || request_.config_by_environment; }
  // The configuration that a file of another kind holds, config_file(); null: config_file() is the configuration.
  const Json& config_in_place() const { return config_in_place_; }
  // Fills in the batch sizes that the configuration leaves to a training YAML, or to the Trainer's default.
  Json with_own_batch(Json config) const;
  // "bf16" or "fp16" by flags or files of the command; empty: neither.
  std::string precision() const;
  Launcher launcher() const { return launcher_.kind; }
  // The number of processes in the command or in accelerate's settings file; nullopt: there is none.
  std::optional<int> slots_per_trial() const;
  // Whether trials get a number of processes that the command does not have. The best command then gets it too.
  bool gets_a_count(Backend backend) const;
  // Whether the launcher starts one process, since the command does not say how many: torchrun does.
  bool starts_one_process() const;
  // The resources in the command; empty for other launchers than deepspeed.
  LauncherResources resources() const;
  // How the deepspeed launcher reaches several hosts: pdsh, openmpi, ...; in lower case, as the launcher reads it.
  std::string multinode_launcher() const;
  // Whether the launcher needs a file to pass the trial's variables to other hosts.
  bool needs_deepspeed_env() const { return launcher_.kind == Launcher::deepspeed && multinode_launcher() != "slurm"; }
  // Whether a trial on these slots gets a hostfile of its own, with a rank on every slot of its hosts. With pdsh
  // --include chooses slots, but it cannot name USER@NAME.
  bool takes_whole_hosts(const std::vector<Slot>& slots) const;
  // The hostfile that the deepspeed launcher reads by default.
  const std::filesystem::path& default_hostfile() const { return request_.default_hostfile; }
  const LauncherUse& launcher_use() const { return launcher_; }
  // The visibility variable that the command or its script sets for all trials; empty: none.
  std::string own_visibility() const;
  // Whether the script sets a fixed port, the same in all trials.
  bool fixes_port() const { return script_fixes_port(request_.argv, request_.cwd); }
  // The place of a hidden launcher that gets neither port nor devices; empty: there is none.
  std::string launcher_out_of_reach() const { return hidden_launcher(request_.argv, request_.cwd); }
  // Whether the command is a Python script without a launcher. If the rank is not set, DeepSpeed asks MPI for it
  // (comm/comm.py of 0.14.5) and uses port 29500, whatever MASTER_PORT is.
  bool starts_lone_script() const;
  // Returns srun or mpirun if it starts such a script, whose ranks then share port 29500; empty: it does not.
  std::string starts_ranks_at_one_port() const;
  // Whether the number of processes can be set in the command.
  bool takes_a_size() const {
    return launcher_.kind != Launcher::none || slots_flag(request_.argv, launcher_).has_value();
  }
  // Whether the launcher writes each rank's output to a file. A trial's files are in kRankLogFolder of its folder.
  bool has_rank_logs() const;
  // Whether "auto" values may be replaced before DeepSpeed sees them. Hugging Face's Trainer and accelerate do so; a
  // script that takes --deepspeed FILE may have a Trainer with its arguments in a file.
  bool may_fill_in_auto() const {
    return trainer_ != Trainer::other || launcher_.kind == Launcher::accelerate || deepspeed_takes_file() ||
           names_config_by(kAccelerateVariable) || training_yaml_ || request_.inject || !request_.arg_mappings.empty();
  }

  Argv render(const TrialContext& trial) const;
  // Returns the files that the trial's folder needs besides the configuration.
  std::vector<CommandFile> files(const TrialContext& trial) const;

  // Renders the command for the full training, with the configuration and the flags of `config`, but without a trial's
  // port or slots. `size` is the tuned size if the command does not give it; nullopt: all slots.
  struct Size {
    TrialShape shape;
    std::filesystem::path hostfile{};  // empty: this machine
    std::vector<Slot> slots{};         // a placement, if not all slots may be used
    bool is_tuned = false;  // the search chose the size; otherwise a command that spreads its processes keeps its own
  };
  Argv render_best(const Json& config, const std::filesystem::path& config_file,
                   const std::optional<Size>& size = std::nullopt) const;
  // Returns the files that the best command needs besides the configuration.
  std::vector<CommandFile> best_files(const Json& config, const std::filesystem::path& config_file,
                                      const std::optional<Size>& size = std::nullopt) const;

  // Notes what the configuration of the command shows of it: "auto" batch sizes are the Trainer's.
  void learn_from(const Json& user_config);

  // Sets the mappings, including those of the configuration. Throws Error if the command lacks a flag.
  void map_arguments(std::vector<std::pair<std::string, std::string>> mappings);

 private:
  std::vector<FlagUse> config_flags() const;
  void find_config();
  void find_word_of_config();
  bool find_config_of_yaml();
  bool find_config_of_accelerate();
  void require_deepspeed_of_accelerate();
  void take_place(const std::filesystem::path& own, Json in_place);
  std::filesystem::path existing_config(const std::string& name, const std::string& where) const;
  bool is_flag_of_accelerate(const FlagUse& use) const {
    return launcher_.kind == Launcher::accelerate &&
           with_underscores(request_.argv[use.flag]).rfind("--deepspeed_config_file", 0) == 0;
  }
  Trainer kind_of_trainer() const;
  void take_config_of_command();
  void take_given_config();
  [[noreturn]] void refuse_no_config() const;
  bool deepspeed_takes_file() const;
  bool names_config_by(std::string_view variable) const;
  void apply_config(Argv& argv, const Json& config, const std::filesystem::path& config_file,
                    const std::filesystem::path& trial_dir, bool is_best) const;
  void add_training_yaml(const Json& config, const std::filesystem::path& config_file, bool is_best,
                         std::vector<CommandFile>& files) const;
  void apply_launcher(Argv& argv, const TrialContext& trial) const;
  void name_config_of_accelerate(Argv& argv, const std::filesystem::path& config_file) const {
    argv = with_config_file(argv, launcher_, accelerate_settings_, config_file, accelerate_config_);
  }
  bool keeps_its_count(int total) const;
  void apply_size(Argv& argv, const Size& size) const;
  Argv no_hostfile() const;
  static void name_files(Argv& argv, const std::vector<CommandFile>& files, const std::filesystem::path& folder);

  CommandRequest request_;
  std::filesystem::path config_file_;
  std::optional<FlagUse> config_use_;
  std::vector<FlagUse> further_uses_;  // for the same file: accelerate's flag and the Trainer's
  bool config_by_variable_ = false;    // the script reads DSAT_DS_CONFIG
  LauncherUse launcher_;
  std::optional<TrainingYaml> training_yaml_;
  AccelerateSettings accelerate_settings_;
  AccelerateConfig accelerate_config_ = AccelerateConfig::none;
  Json config_in_place_;
  Trainer trainer_ = Trainer::other;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_COMMAND_TEMPLATE_H_
