// The user's training command: where its configuration stands in it, and a fresh argument list for every trial.
//
// Threading: immutable once parsed. Errors: dsat::Error, one line, before anything is run. docs/trial.md has the rules.
#ifndef DSAT_HOST_COMMAND_COMMAND_TEMPLATE_H_
#define DSAT_HOST_COMMAND_COMMAND_TEMPLATE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command/accelerate_settings.h"
#include "command/command_args.h"
#include "command/environment_use.h"
#include "command/hidden_launcher.h"
#include "command/hugging_face.h"
#include "command/launchers.h"
#include "dsat/error.h"
#include "dsat/host/environment.h"
#include "slots/slots.h"

namespace dsat::host {

// Where the deepspeed launcher looks for a hostfile by itself.
inline constexpr const char* kDefaultHostfile = "/job/hostfile";
inline constexpr const char* kNoHostfile = "/dev/null";  // as people write it for the launcher, and dsat too

struct CommandRequest {
  Argv argv;
  std::optional<std::filesystem::path> ds_config;                 // --ds-config
  std::vector<std::pair<std::string, std::string>> arg_mappings;  // dotted config key -> flag of the command
  std::filesystem::path cwd;                                      // absolute: where the command runs
  Environment environment;                                        // for PATH
  // ds_config is the configuration (if there is a file at all), even if the command names another one: the script may
  // take it from its environment.
  bool config_by_environment = false;
  std::filesystem::path default_hostfile = kDefaultHostfile;
};

// accelerate's settings and a hostfile, in a trial's folder and in the study's for the best command.
inline constexpr const char* kAccelerateFile = "accelerate_config.yaml";
inline constexpr const char* kBestAccelerateFile = "best_accelerate_config.yaml";
inline constexpr const char* kHostfile = "hostfile";
inline constexpr const char* kBestHostfile = "best_hostfile";

// The folder in a trial's own that takes each rank's output, where the command has it in files.
inline constexpr const char* kRankLogFolder = "rank_logs";

// What differs between trials.
struct TrialContext {
  std::filesystem::path config_file, trial_dir;  // absolute
  std::vector<Slot> slots;
  uint16_t port = 0;
  Json config;                       // the trial's; batch sizes are numbers
  std::filesystem::path hostfile{};  // that `deepspeed` is to read; empty: all slots are this machine's
  Backend backend = Backend::none;
  // Below a cluster's scheduler: on how many nodes of its allocation the trial runs; 0: it does not. `hostfile` then
  // holds exactly these nodes.
  int allocation_nodes = 0;
  bool has_bound_devices = false;  // the scheduler has bound the trial's devices: the launcher is to take what it sees
  bool size_is_ours = false;       // the size comes from elsewhere than the command, which is then given it
};

// A file of a trial's folder, or of the study's for the best command, that the command names behind an option.
struct CommandFile {
  std::string option, name, text;
};

// The hosts and slots that the deepspeed launcher's own arguments name.
struct LauncherResources {
  std::string hostfile, include, exclude;  // empty: not given
  std::optional<int> num_gpus, num_nodes;
};

class CommandTemplate {
 public:
  // Checks that the program can be run and that there is exactly one configuration. Throws Error.
  explicit CommandTemplate(CommandRequest request);

  const Argv& argv() const { return request_.argv; }
  // The user's configuration file; absolute, or empty: there is none. It may be one that cannot be read.
  const std::filesystem::path& config_file() const { return config_file_; }
  Launcher launcher() const { return launcher_.kind; }
  // Processes that the command itself, or accelerate's settings file, asks for; nullopt: there is no number.
  std::optional<int> slots_per_trial() const {
    const std::optional<int> count = command_slots(request_.argv, launcher_);
    return count ? count : accelerate_settings_.num_processes;
  }
  // Do its trials get a number of processes that the command has not? The best command is to have it, too.
  bool gets_a_count(Backend backend) const;
  // Empty for any other launcher.
  LauncherResources resources() const;
  // By what the deepspeed launcher reaches several hosts: pdsh, openmpi, ...; in small letters, as it reads them.
  std::string multinode_launcher() const;
  // Does that start a rank for every slot of the hostfile, whatever --include says? All but pdsh do.
  // Does the launcher need a file to take the trial's variables to other hosts?
  bool needs_deepspeed_env() const { return launcher_.kind == Launcher::deepspeed && multinode_launcher() != "slurm"; }
  bool takes_whole_hostfile() const { return launcher_.kind == Launcher::deepspeed && multinode_launcher() != kPdsh; }
  // What the deepspeed launcher reads where it is given no hostfile.
  const std::filesystem::path& default_hostfile() const { return request_.default_hostfile; }
  // How its deepspeed launcher is to reach other hosts.
  const LauncherUse& launcher_use() const { return launcher_; }
  // The visibility variable that the command or its script sets itself, for all trials alike; empty: there is none.
  std::string own_visibility() const;
  // Does its script meet at a port of its own, the same in all trials?
  bool fixes_port() const { return script_fixes_port(request_.argv, request_.cwd); }
  // Where a launcher is that takes no port and no devices; empty: there is none.
  std::string launcher_out_of_reach() const { return hidden_launcher(request_.argv, request_.cwd); }
  // Is it a Python script that nobody gives a rank? Where one is missing, DeepSpeed asks MPI for it (comm/comm.py of
  // 0.14.5) and takes port 29500, whatever MASTER_PORT is.
  bool starts_lone_script() const;
  // srun or mpirun, where its ranks do that; empty: they do not.
  std::string starts_ranks_at_one_port() const;
  // Is there a place for the number of processes of a trial?
  bool takes_a_size() const {
    return launcher_.kind != Launcher::none || slots_flag(request_.argv, launcher_).has_value();
  }
  // Does its launcher write each rank's output to a file? A trial's are in kRankLogFolder of its folder.
  bool has_rank_logs() const;
  // May "auto" values of the configuration be filled in before DeepSpeed sees them? Hugging Face's Trainer and
  // accelerate do so, and a script that takes --deepspeed FILE may have a Trainer whose arguments stand in a file.
  bool may_fill_in_auto() const {
    return trainer_ != Trainer::other || launcher_.kind == Launcher::accelerate || deepspeed_takes_file() ||
           !request_.arg_mappings.empty();
  }

  Argv render(const TrialContext& trial) const;
  // What has to be in the trial's folder for it, beside the configuration.
  std::vector<CommandFile> files(const TrialContext& trial) const;

  // For the full training: the configuration and the flags of `config`, but no trial's port or slots. `size` is the
  // size that was tuned for, where the command itself does not name it; nullopt: all slots there are.
  struct Size {
    TrialShape shape;
    std::filesystem::path hostfile{};  // empty: this machine
    std::vector<Slot> slots{};         // a placement of it, where not every slot may be used
    bool is_tuned = false;             // the search chose it; else a command that spreads its processes keeps them
  };
  Argv render_best(const Json& config, const std::filesystem::path& config_file,
                   const std::optional<Size>& size = std::nullopt) const;
  // What has to be beside the configuration for it.
  std::vector<CommandFile> best_files(const std::filesystem::path& config_file,
                                      const std::optional<Size>& size = std::nullopt) const;

  // The mappings that hold, those of the configuration included. Throws Error: a flag is none of the command's.
  void map_arguments(std::vector<std::pair<std::string, std::string>> mappings);

 private:
  std::vector<FlagUse> config_flags() const;
  void find_config();
  void take_config_of_command();
  void take_given_config();
  [[noreturn]] void refuse_no_config() const;
  bool deepspeed_takes_file() const;
  void apply_config(Argv& argv, const Json& config, const std::filesystem::path& config_file,
                    const std::filesystem::path& trial_dir) const;
  void apply_launcher(Argv& argv, const TrialContext& trial) const;
  bool keeps_its_count(int total) const;
  void apply_size(Argv& argv, const Size& size) const;
  Argv no_hostfile() const;
  static void name_files(Argv& argv, const std::vector<CommandFile>& files, const std::filesystem::path& folder);

  CommandRequest request_;
  std::filesystem::path config_file_;
  std::optional<FlagUse> config_use_;
  std::vector<FlagUse> further_uses_;  // of the same file: accelerate's flag and the Trainer's
  bool config_by_variable_ = false;    // the script reads DSAT_DS_CONFIG
  LauncherUse launcher_;
  AccelerateSettings accelerate_settings_;
  Trainer trainer_ = Trainer::other;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_COMMAND_TEMPLATE_H_
