// The settings of a study, in groups. Each group is a struct with a table of its fields.
//
// Purpose: StudyOptions, the plan of a study, its runner, the journal and the command line share these structs. A table
//   gives each field its key in the journal (and in `show --json`), its option and the option's help. Readers and
//   writers are visitors of the tables. A new setting is one field and one row, and a line in
//   host/cli/commands/host_options.cc if it has an option. After a release the row is later_setting(...).
// Use: GROUP::visit(group, visitor) calls visitor(const Setting&, field) for every field, in the order of the help.
// Threading: plain values. Units: bytes; times are milliseconds. Errors: none; the reader of a value checks it.
#ifndef DSAT_HOST_SETTINGS_H_
#define DSAT_HOST_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsat/error.h"

namespace dsat::host {

// A row of a table.
struct Setting {
  const char* key;                 // in the journal; nullptr: the journal does not keep the field
  const char* option = nullptr;    // on the command line, without dashes; nullptr: no option
  const char* other = nullptr;     // a further spelling of the option, with dashes
  const char* value_name = "";     // the value in the help
  const char* fallback = nullptr;  // the default in the help; nullptr: the field's own default
  const char* help = "";
  int64_t least = 1;            // of numbers
  const char* words = nullptr;  // words that the option takes in place of a number or text: "auto", "keep|copy"
  bool is_later = false;        // a plan of an earlier release may lack it, and its default holds then
};

// A setting that came after the first release.
inline Setting later_setting(Setting setting) {
  setting.is_later = true;
  return setting;
}

// The first failure of a trial may be the machine's fault; the second one hardly ever is.
inline constexpr int kDefaultMaxRestarts = 1;

// The limits of a study.
struct StudyLimits {
  int max_trials = 50;
  std::optional<int> early_stopping;  // end after so many trials of the searcher without a better one
  int max_concurrent_trials = 16;
  std::optional<int> max_slots;  // of all running trials together
  std::optional<std::chrono::milliseconds> time_budget;
  std::optional<int> max_restarts;    // of a failed trial; nullopt: kDefaultMaxRestarts; a plan always has it
  std::optional<int> profile_trials;  // nullopt: the searcher's number, else 3; a plan always has it
  std::string budget;                 // device-hours of all trials together: "40gpuh"; empty: no such limit

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"max_trials", "max-trials", "-mt", "N", nullptr,
                    "trials to run at most, those of the profiler included"},
            self.max_trials);
    visitor(Setting{"max_concurrent_trials", "max-concurrent-trials", "-mct", "N", nullptr,
                    "trials to run at the same time at most"},
            self.max_concurrent_trials);
    visitor(Setting{"max_slots", "max-slots", "-ms", "N", nullptr,
                    "slots (devices) that all running trials may use together"},
            self.max_slots);
    visitor(Setting{"time_budget_ms", "time-budget", nullptr, "TIME", nullptr,
                    "end the search after this time; a resume begins a new budget: 90s, 15m, 2h"},
            self.time_budget);
    visitor(Setting{"profile_trials", "profile-trials", nullptr, "N", "the searcher's, else 3",
                    "trials of the profiler; a trial out of memory is replaced"},
            self.profile_trials);
    visitor(Setting{"max_restarts", "max-restarts", nullptr, "N", "1",
                    "run a failed trial again up to N times; a trial out of memory is not run again", 0},
            self.max_restarts);
    visitor(Setting{"early_stopping"}, self.early_stopping);
    visitor(Setting{"budget", "budget", nullptr, "Ngpuh", nullptr,
                    "end the study when its trials have used so many device-hours: 40gpuh"},
            self.budget);
  }
};

// The measurements of a study beside the search: docs/own-configuration.md.
struct Comparison {
  bool baseline = true;           // measure the user's own configuration
  std::optional<int> finals;      // trials kept for measuring the finalists again; nullopt: by max_trials
  int verify_steps = 0;           // further steps that the best trains before the study ends; 0: none
  bool keep_all_changes = false;  // hand back the searcher's choice with all of its keys
  bool twin = true;               // train the best's keys at the user's own batch: docs/guard.md
  double memory_margin = 0;       // share of a device's memory that the best must leave free, from 0 to below 1

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"baseline", "no-baseline", nullptr, "", nullptr,
                    "do not measure your own configuration; the gain over it stays unknown"},
            self.baseline);
    visitor(Setting{"finals", "finals", nullptr, "N", "by --max-trials",
                    "trials kept for measuring the best and your own configuration again; 0: none", 0},
            self.finals);
    visitor(Setting{"verify_steps", "verify", nullptr, "N", nullptr,
                    "train N further steps with the best; if that fails, with the next best", 0},
            self.verify_steps);
    visitor(later_setting(Setting{"keep_all_changes", "keep-all-changes", nullptr, "", nullptr,
                                  "keep the keys of the best that have no clear effect"}),
            self.keep_all_changes);
    visitor(later_setting(Setting{"twin", "no-twin", nullptr, "", nullptr,
                                  "do not check that the best learns what your own configuration learns"}),
            self.twin);
    visitor(Setting{"memory_margin", "memory-margin", nullptr, "SHARE", nullptr,
                    "share of a device's memory that the best configuration must leave free: 0.05"},
            self.memory_margin);
  }
};

// The times after which a trial is ended.
struct TrialTimeouts {
  std::chrono::milliseconds trial_timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds no_progress_timeout{std::chrono::minutes(10)};

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"trial_timeout_ms", "trial-timeout", nullptr, "TIME", nullptr,
                    "end a trial that runs longer than this"},
            self.trial_timeout);
    visitor(Setting{"no_progress_timeout_ms", "no-progress-timeout", nullptr, "TIME", nullptr,
                    "end a trial that has written nothing for this time"},
            self.no_progress_timeout);
  }
};

// The plugins that run in a process of their own (docs/plugins-apart.md), in the order of the option's words.
enum class Isolation {
  automatic,  // the plugins that do not come with dsat
  process,    // every plugin
  none
};

struct PluginProcesses {
  Isolation isolation = Isolation::automatic;
  std::chrono::milliseconds plugin_timeout{std::chrono::seconds(60)};  // of one call
  std::filesystem::path plugin_host;  // dsat-plugin-host; empty: beside this program, else <libexecdir>/dsat

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(
        Setting{"isolation", "isolation", nullptr, "auto|process|none", nullptr,
                "plugins that run in processes of their own: those not of dsat, all or none", 1, "auto|process|none"},
        self.isolation);
    visitor(Setting{"plugin_timeout_ms", "plugin-timeout", nullptr, "TIME", nullptr,
                    "end a plugin's process that has not answered for so long"},
            self.plugin_timeout);
    visitor(Setting{"plugin_host"}, self.plugin_host);
  }
};

// The metric to optimise, and the ZeRO stages to search.
struct SearchTarget {
  std::string metric = "FLOPS_per_gpu";  // or an alias; canonical in a plan
  std::vector<int> zero_stages;          // empty: the searcher's stages, else 1, 2 and 3; never empty in a plan

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"metric", "metric", "-m", "NAME", nullptr,
                    "maximise FLOPS_per_gpu, throughput or wall_throughput, or minimise latency, wall_latency, "
                    "forward, backward or step"},
            self.metric);
    visitor(Setting{"zero_stages", "zero-stages", "-z", "STAGE...", "the searcher's, else 1 2 3",
                    "ZeRO stages to search, of 0 1 2 3", 0, "0|1|2|3"},
            self.zero_stages);
  }
};

// Bounds of the batch sizes.
struct BatchBounds {
  std::optional<int64_t> global_batch, max_train_batch_size;
  int64_t min_micro_batch = 1;
  std::optional<int64_t> max_micro_batch;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"global_batch", "global-batch", nullptr, "N", nullptr,
                    "keep train_batch_size at N; the accumulation follows the micro batch"},
            self.global_batch);
    visitor(Setting{"max_train_batch_size", "max-train-batch-size", nullptr, "N", nullptr,
                    "largest train_batch_size to try"},
            self.max_train_batch_size);
    visitor(Setting{"min_micro_batch", "min-micro-batch", nullptr, "N", nullptr, "smallest micro batch to try"},
            self.min_micro_batch);
    visitor(Setting{"max_micro_batch", "max-micro-batch", nullptr, "N", nullptr, "largest micro batch to try"},
            self.max_micro_batch);
  }
};

// Other settings of the search.
struct SearchSettings {
  uint64_t seed = 42;
  // false: tune only the stage, the micro batch, and the keys that the configuration and the space file list
  bool default_axes = true;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"seed", "random-seed", "-r", "N", nullptr, "the same seed gives the same search", 0}, self.seed);
    visitor(Setting{"default_axes"}, self.default_axes);
  }
};

// The slots that the user asks for, of a study and of a trial. A plan has the slots that were found.
struct SlotOptions {
  std::optional<int> slots;              // nullopt: all that are found (docs/trial.md)
  std::optional<int> slots_per_trial;    // nullopt: the command's own flag, else all
  std::vector<int> num_gpus, num_nodes;  // GPUs of each node, and nodes, of a trial; several values are searched
  // Several hosts, as DeepSpeed's users name them (docs/resources.md). Empty: the launcher's own flags in the command.
  std::filesystem::path hostfile;
  std::string include, exclude;  // "worker-0@worker-1:0,2"; at most one of the two

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{nullptr, "slots", nullptr, "N|auto", "auto", "devices of this machine", 1, "auto"}, self.slots);
    visitor(Setting{nullptr, "slots-per-trial", nullptr, "N", nullptr,
                    "devices of one trial; default: the launcher's flag, else all"},
            self.slots_per_trial);
    visitor(Setting{nullptr, "num-gpus", "--num_gpus", "N[,N...]", nullptr,
                    "GPUs of a trial on each node; several values are searched"},
            self.num_gpus);
    visitor(Setting{nullptr, "num-nodes", "--num_nodes", "N[,N...]", nullptr,
                    "nodes of a trial, default all; several values are searched"},
            self.num_nodes);
    visitor(Setting{nullptr, "hostfile", "-H", "FILE", nullptr,
                    "hosts and their slots, one on each line: worker-1 slots=4"},
            self.hostfile);
    visitor(Setting{nullptr, "include", "-i", "NODES", nullptr, "nodes and slots to use: worker-0@worker-1:0,2"},
            self.include);
    visitor(Setting{nullptr, "exclude", "-e", "NODES", nullptr, "nodes and slots not to use"}, self.exclude);
  }
};

// Settings for trials on other machines: docs/slurm.md, docs/runners.md.
struct ClusterOptions {
  std::string runner;  // "local", "pilot", "slurm", "prefix"; empty: chosen by the environment; never empty in a plan
  std::string runner_command;  // of "prefix": reaches a host, as 'ssh {host}'
  std::string partition, account, qos, constraint, gres, job_time;
  std::vector<std::string> slurm_options;  // words of sbatch
  std::string slurm_launch;                // command, srun, deepspeed, torchrun; empty: by the command
  std::string token;                       // part of the names of the study's jobs, unique to the study
  bool has_gpus = false;                   // trials have GPUs, so their jobs request devices

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"runner_command", "runner-command", nullptr, "PREFIX", nullptr,
                    "run trials on the hosts of --hostfile through this command: 'ssh {host}'"},
            self.runner_command);
    visitor(Setting{"partition", "partition", nullptr, "NAME", nullptr, "partition of the jobs of --runner slurm"},
            self.partition);
    visitor(Setting{"account", "account", nullptr, "NAME", nullptr, "account that pays for the jobs"}, self.account);
    visitor(Setting{"qos", "qos", nullptr, "NAME", nullptr, "quality of service of the jobs"}, self.qos);
    visitor(Setting{"constraint", "constraint", nullptr, "LIST", nullptr, "features that the jobs' nodes must have"},
            self.constraint);
    visitor(Setting{"gres", "gres", nullptr, "NAME", "gpu where GPUs are asked for",
                    "kind of device, one for each slot: gpu:a100; none: jobs without devices"},
            self.gres);
    visitor(Setting{"job_time", "job-time", nullptr, "TIME", "--trial-timeout and 2 minutes",
                    "time limit of a job: minutes, or 1:30:00, 2-12, 90m"},
            self.job_time);
    visitor(Setting{"slurm_options", "slurm-option", nullptr, "WORD", nullptr,
                    "a further option for sbatch: --slurm-option=--mem=64G; may be given again"},
            self.slurm_options);
    visitor(Setting{"slurm_launch", "slurm-launch", nullptr, "HOW", "by COMMAND",
                    "the program that starts a trial on its nodes: command, srun, deepspeed or torchrun"},
            self.slurm_launch);
    visitor(Setting{"job_token"}, self.token);
    visitor(Setting{"has_gpus"}, self.has_gpus);
  }
};

// The measurement of a trial.
struct TrialMeasurement {
  std::optional<uint64_t> device_memory_bytes;       // nullopt: as trials report
  int start_profile_step = 3, end_profile_step = 5;  // the optimizer steps that are measured, both included
  std::vector<std::string> oom_patterns{};           // regular expressions: lines that mean out of memory
  std::string loss_pattern{}, grad_norm_pattern{};   // their group is the number of a step; empty: none
  std::string metric_pattern{};                      // its group is the metric, kPrintedMetric; empty: none
  bool smaller_is_better = false;                    // of that metric
  std::optional<int64_t> tokens_per_sample{};        // shows tokens/s beside samples/s
  std::string device{};                              // a name of host/data/devices.json, for MFU; empty: none

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"device_memory_bytes", "device-memory", nullptr, "SIZE", nullptr,
                    "memory of one device: 80GB, 512MiB; default: as trials report"},
            self.device_memory_bytes);
    visitor(
        Setting{"start_profile_step", "start-profile-step", nullptr, "N", nullptr, "first step that is measured", 0},
        self.start_profile_step);
    visitor(Setting{"end_profile_step", "end-profile-step", nullptr, "N", nullptr, "last step that is measured", 0},
            self.end_profile_step);
    visitor(Setting{"oom_patterns", "oom-pattern", nullptr, "REGEX", nullptr,
                    "a further line that means out of memory when a trial prints it; may be given again"},
            self.oom_patterns);
    visitor(later_setting(Setting{"loss_pattern", "loss-pattern", nullptr, "REGEX", nullptr,
                                  "the line of a step with its loss, in a group: 'loss: ([-+.0-9a-z]+)'"}),
            self.loss_pattern);
    visitor(later_setting(Setting{"grad_norm_pattern", "grad-norm-pattern", nullptr, "REGEX", nullptr,
                                  "the line of a step with its gradient norm, in a group"}),
            self.grad_norm_pattern);
    visitor(later_setting(Setting{"metric_pattern", "metric-pattern", nullptr, "REGEX", nullptr,
                                  "maximise the number in the group, of the lines of the window: 'tps: ([0-9.,]+)'"}),
            self.metric_pattern);
    visitor(later_setting(Setting{"smaller_is_better", "smaller-is-better", nullptr, "", nullptr,
                                  "minimise the number of --metric-pattern"}),
            self.smaller_is_better);
    visitor(later_setting(Setting{"tokens_per_sample", "tokens-per-sample", nullptr, "N", nullptr,
                                  "show the best's tokens/s too: the tokens of a sample"}),
            self.tokens_per_sample);
    visitor(
        later_setting(Setting{"device", "device", nullptr, "NAME", nullptr,
                              "with --tokens-per-sample: show the MFU on this device: A100, H100-SXM, MI300X, ..."}),
        self.device);
  }
};

enum class TrialCwd { keep, copy };

// The command of a trial: its folder, files, variables and hyperparameters.
struct TrialSetup {
  std::filesystem::path cwd;  // where the command runs; empty: the current folder; absolute in a plan
  std::vector<std::pair<std::string, std::string>> arg_mappings;  // config key -> flag of the command
  TrialCwd trial_cwd = TrialCwd::keep;
  std::vector<std::filesystem::path> includes;  // with TrialCwd::copy: files and folders copied beside those of cwd
  bool probe = true;                            // measure memory in the trials' Python processes (docs/probe.md)
  bool inject = false;  // merge the trials' configurations over those that the script builds (docs/launchers.md)
  // For a study that an experiment file describes (docs/trial.md).
  bool config_by_environment = false;  // the configuration is ds_config, or config_overwrites alone; the script reads
                                       // DSAT_DS_CONFIG or DSAT_HPARAMS, so the command need not name a file
  std::vector<std::string> variables;  // "NAME=value" for every trial; the journal keeps them, but not `environment`
  Json hyperparameters;                // an object, which each trial gets in the file DSAT_HPARAMS; null: none

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"cwd"}, self.cwd);
    visitor(Setting{"arg_mappings", "arg-mapping", nullptr, "KEY=FLAG", nullptr,
                    "give a flag of COMMAND, or a word NAME=, the value of a configuration key; may be given again"},
            self.arg_mappings);
    visitor(Setting{"trial_cwd", "trial-cwd", nullptr, "keep|copy", nullptr,
                    "run trials in this folder, or each in a copy of it", 1, "keep|copy"},
            self.trial_cwd);
    visitor(Setting{"includes"}, self.includes);
    visitor(Setting{"probe", "no-probe", nullptr, "", nullptr,
                    "do not load the memory probe into the trials' Python processes"},
            self.probe);
    visitor(later_setting(Setting{"inject", "inject", nullptr, "", nullptr,
                                  "merge the trials' configurations over the one that the script builds in Python"}),
            self.inject);
    visitor(Setting{"config_by_environment"}, self.config_by_environment);
    visitor(Setting{"variables"}, self.variables);
    visitor(Setting{"hyperparameters"}, self.hyperparameters);
  }
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SETTINGS_H_
