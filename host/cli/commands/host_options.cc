#include "commands/host_options.h"

#include "deepspeed/launcher_options.h"
#include "determined/search_runner_config.h"
#include "dsat/base/units.h"
#include "dsat/host/study.h"

namespace dsat::cli {
namespace {

using std::to_string;

Option valued(const char* name, const char* value_name, std::string fallback, const char* help) {
  Option option;
  option.name = name;
  option.value_name = value_name;
  option.fallback = std::move(fallback);
  option.help = help;
  return option;
}

Option toggle(const char* name, const char* help) {
  Option option = valued(name, "", "", help);
  option.takes = Takes::nothing;
  return option;
}

Option spelt(Option option, const char* other) {
  option.others.emplace_back(other);
  return option;
}

void add_group(OptionSet& set, const char* group, std::vector<Option> options) {
  for (Option& option : options) {
    option.group = group;
    set.add(std::move(option));
  }
}

Option help_option() { return spelt(toggle("help", "print this and end"), "-h"); }
Option json_option(const char* help) { return toggle("json", help); }
Option quiet_option() { return toggle("quiet", "no progress: warnings, errors and the result only"); }
Option max_trials_option() {
  return spelt(valued("max-trials", "N", to_string(host::StudyOptions().max_trials),
                      "trials to run at most, those of the profiler included"),
               "-mt");
}
Option max_concurrent_option() {
  return spelt(valued("max-concurrent-trials", "N", to_string(host::StudyOptions().max_concurrent_trials),
                      "trials to run at the same time at most"),
               "-mct");
}
Option time_budget_option() {
  return valued("time-budget", "TIME", "", "end the search after this long: 90s, 15m, 2h");
}

void add_search_options(OptionSet& set) {
  const host::StudyOptions defaults;
  Option stages =
      spelt(valued("zero-stages", "STAGE...", "the searcher's, else 1 2 3", "ZeRO stages to search, of 0 1 2 3"), "-z");
  stages.takes = Takes::stages;
  add_group(
      set, "What to search, and how",
      {valued("searcher", "PLUGIN", kDefaultSearcher, "guided, asha, binary, random, grid, or the path of a plugin"),
       valued("profiler", "PLUGIN", defaults.profiler.plugin, "what measures the model first: a path or a name"),
       spelt(valued("metric", "NAME", defaults.metric,
                    "FLOPS_per_gpu or throughput (largest), latency, forward, backward or step (smallest)"),
             "-m"),
       std::move(stages), valued("space", "FILE", "", "further keys to tune and their values, as JSON"),
       valued("global-batch", "N", "", "fixed train_batch_size: the accumulation follows the micro batch"),
       valued("max-train-batch-size", "N", "", "largest train_batch_size to try"),
       valued("min-micro-batch", "N", to_string(defaults.min_micro_batch), "smallest micro batch to try"),
       valued("max-micro-batch", "N", "", "largest micro batch to try"),
       spelt(valued("random-seed", "N", to_string(defaults.seed), "the same seed gives the same search"), "-r")});
}

void add_limit_options(OptionSet& set) {
  add_group(
      set, "Limits",
      {max_trials_option(), max_concurrent_option(),
       spelt(valued("max-slots", "N", "", "slots (devices) that all running trials may use together"), "-ms"),
       time_budget_option(),
       valued("profile-trials", "N", "the searcher's, else 3", "trials of the profiler; one out of memory is replaced"),
       valued("trial-timeout", "TIME", "30m", "end a trial that runs longer"),
       valued("no-progress-timeout", "TIME", "10m", "end a trial that has written nothing for this long")});
}

void add_trial_options(OptionSet& set) {
  const host::StudyOptions defaults;
  Option mapping = valued("arg-mapping", "KEY=FLAG", "",
                          "keep a flag of COMMAND in step with a key of the configuration; may be given again");
  mapping.repeatable = true;
  add_group(
      set, "How trials run",
      {valued("ds-config", "FILE", "", "base configuration; needed where COMMAND names none"),
       valued("slots", "N|auto", "auto", "devices of this machine"),
       valued("slots-per-trial", "N", "", "devices of one trial; default: the launcher's own flag, else all"),
       spelt(valued("num-gpus", "N[,N...]", "", "GPUs of each node that a trial takes; several are searched"),
             "--num_gpus"),
       spelt(valued("num-nodes", "N[,N...]", "", "nodes that a trial takes, default all; several are searched"),
             "--num_nodes"),
       spelt(valued("hostfile", "FILE", "", "hosts and their slots, one a line: worker-1 slots=4"), "-H"),
       spelt(valued("include", "NODES", "", "nodes and slots to use: worker-0@worker-1:0,2"), "-i"),
       spelt(valued("exclude", "NODES", "", "nodes and slots to leave alone"), "-e"),
       valued("device-memory", "SIZE", "", "memory of one device: 80GB, 512MiB; default: as the trial tells"),
       valued("start-profile-step", "N", to_string(defaults.start_profile_step), "first step that is measured"),
       valued("end-profile-step", "N", to_string(defaults.end_profile_step), "last step that is measured"),
       std::move(mapping), valued("trial-cwd", "keep|copy", "keep", "run trials in this folder or in a copy of it"),
       valued("runner", "local|slurm|sim", "local", "where trials run: on this machine, or in a model of a cluster"),
       valued("sim", "FILE", "", "for --runner sim: a cluster (JSON) or recorded trials (CSV); no COMMAND is needed"),
       toggle("run-full-experiment", "run COMMAND with the best configuration at the end")});
}

OptionSet study_option_set() {
  OptionSet set;
  add_search_options(set);
  add_limit_options(set);
  add_trial_options(set);
  add_group(set, "Output",
            {valued("output-dir", "DIR", "dsat-results/<name>", "the run directory"), quiet_option(),
             json_option("the result as one JSON object on standard output; all else on standard error"),
             toggle("version", "print the version and end"), help_option()});
  return set;
}

}  // namespace

OptionSet tune_options() {
  OptionSet set = study_option_set();
  add_deepspeed_options(set);
  return set;
}

OptionSet experiment_options() {
  OptionSet set = study_option_set();
  set.remove("include");  // here it names files, as in Determined's form
  Option include = spelt(valued("include", "FILE...", "", "files and folders to copy beside those of MODEL_DIR"), "-i");
  include.takes = Takes::several;
  include.repeatable = true;
  add_group(set, "The experiment form",
            {std::move(include),
             valued("search-runner-config", "FILE", "", "Determined's; its name and max_restarts are taken"),
             valued("max-search-runner-restarts", "N", to_string(kDefaultSearchRunnerRestarts),
                    "take the search up again so often if dsat-host or a plugin dies; 0: never")});
  return set;
}

OptionSet resume_options() {
  OptionSet set;
  Option trials = max_trials_option(), concurrent = max_concurrent_option();
  trials.fallback = concurrent.fallback = "as before";
  add_group(
      set, "Options",
      {std::move(trials), std::move(concurrent), time_budget_option(), quiet_option(),
       json_option("the result as one JSON object on standard output; all else on standard error"), help_option()});
  return set;
}

OptionSet show_options() {
  OptionSet set;
  add_group(set, "Options",
            {json_option("the whole study as one JSON object"),
             toggle("csv", "its trials as a table that --runner sim --sim FILE.csv replays"), help_option()});
  return set;
}

OptionSet plugins_options() {
  OptionSet set;
  add_group(set, "Options", {json_option("the plugins as one JSON object"), help_option()});
  return set;
}

OptionSet estimate_options() {
  OptionSet set;
  add_group(set, "The training",
            {valued("num-params", "N", "", "parameters of the model: 7.5e9"),
             valued("trainable-params", "N", "all", "those that are trained"),
             valued("world-size", "N", "", "devices, all of them data-parallel"),
             valued("precision", "NAME", "fp16", "fp16, bf16 or fp32"),
             valued("optimizer", "NAME", "adam", "adam, adamw, sgd or sgd-momentum"),
             valued("device-memory", "SIZE", "", "memory of one device: gives the maximum micro batch"),
             valued("offload-optimizer", "cpu", "", "optimizer states in host memory (stages 2 and 3)"),
             valued("offload-param", "cpu", "", "parameters in host memory (stage 3)")});
  add_group(set, "The transformer, for its activations: all of the first four or none",
            {valued("layers", "N", "", "transformer layers"), valued("hidden", "N", "", "hidden size"),
             valued("heads", "N", "", "attention heads"), valued("seq", "N", "", "tokens of one sample"),
             toggle("flash-attention", "attention scores are not kept"),
             valued("checkpointing", "NAME", "none", "activation checkpointing: none, selective or full")});
  add_group(set, "Output", {json_option("the estimate as one JSON object"), help_option()});
  return set;
}

}  // namespace dsat::cli
