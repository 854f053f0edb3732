// Declares every option of dsat-host, by the groups of --help.
// A form of the program adds to a set or takes out of it.
#include "commands/host_options.h"

#include "deepspeed/launcher_options.h"
#include "determined/search_runner_config.h"
#include "dsat/host/study.h"

namespace dsat::cli {
namespace {

Option help_option() { return Option::toggle("help", "print this and end").also("-h"); }
Option json_option(const char* help) { return Option::toggle("json", help); }
Option quiet_option() { return Option::toggle("quiet", "no progress: warnings, errors and the result only"); }

// An integer that the library keeps as an int.
Option count(const char* name, int64_t least, const char* help) {
  return Option::integer(name, help).from(least, Option::kLargestInt);
}

Option max_trials_option() {
  return count("max-trials", 1, "trials to run at most, those of the profiler included")
      .also("-mt")
      .by_default(host::StudyOptions().max_trials);
}
Option max_concurrent_option() {
  return count("max-concurrent-trials", 1, "trials to run at the same time at most")
      .also("-mct")
      .by_default(host::StudyOptions().max_concurrent_trials);
}
Option time_budget_option() { return Option::duration("time-budget", "end the search after this long: 90s, 15m, 2h"); }

void add_search_options(OptionSet& set) {
  const host::StudyOptions defaults;
  set.add_group(
      "What to search, and how",
      {Option::text("searcher", "PLUGIN", "guided, asha, binary, random, grid, or the path of a plugin")
           .by_default(kDefaultSearcher),
       Option::text("profiler", "PLUGIN", "what measures the model first: a path or a name")
           .by_default(defaults.profiler.plugin),
       Option::text("metric", "NAME",
                    "FLOPS_per_gpu or throughput (largest), latency, forward, backward or step (smallest)")
           .also("-m")
           .by_default(defaults.metric),
       Option::choice("zero-stages", {"0", "1", "2", "3"}, "ZeRO stages to search, of 0 1 2 3")
           .shown_as("STAGE...")
           .taking(Takes::words)
           .when_repeated(Again::adds)
           .also("-z")
           .by_default("the searcher's, else 1 2 3"),
       Option::text("space", "FILE", "further keys to tune and their values, as JSON"),
       Option::integer("global-batch", "fixed train_batch_size: the accumulation follows the micro batch").from(1),
       Option::integer("max-train-batch-size", "largest train_batch_size to try").from(1),
       Option::integer("min-micro-batch", "smallest micro batch to try").from(1).by_default(defaults.min_micro_batch),
       Option::integer("max-micro-batch", "largest micro batch to try").from(1),
       Option::integer("random-seed", "the same seed gives the same search")
           .from(0)
           .also("-r")
           .by_default(static_cast<int64_t>(defaults.seed))});
}

void add_limit_options(OptionSet& set) {
  set.add_group("Limits",
                {max_trials_option(), max_concurrent_option(),
                 count("max-slots", 1, "slots (devices) that all running trials may use together").also("-ms"),
                 time_budget_option(),
                 count("profile-trials", 1, "trials of the profiler; one out of memory is replaced")
                     .by_default("the searcher's, else 3"),
                 Option::duration("trial-timeout", "end a trial that runs longer").by_default("30m"),
                 Option::duration("no-progress-timeout", "end a trial that has written nothing for this long")
                     .by_default("10m")});
}

void add_placement_options(OptionSet& set) {
  set.add_group("Where trials run",
                {Option::integer("slots", "devices of this machine")
                     .from(1, Option::kLargestInt)
                     .or_word("auto")
                     .by_default("auto"),
                 count("slots-per-trial", 1, "devices of one trial; default: the launcher's own flag, else all"),
                 Option::text("num-gpus", "N[,N...]", "GPUs of each node that a trial takes; several are searched"),
                 Option::text("num-nodes", "N[,N...]", "nodes that a trial takes, default all; several are searched"),
                 Option::text("hostfile", "FILE", "hosts and their slots, one a line: worker-1 slots=4").also("-H"),
                 Option::text("include", "NODES", "nodes and slots to use: worker-0@worker-1:0,2").also("-i"),
                 Option::text("exclude", "NODES", "nodes and slots to leave alone").also("-e"),
                 Option::size("device-memory", "memory of one device: 80GB, 512MiB; default: as the trial reports"),
                 // A text: slurm is known, and refused with what to do instead.
                 Option::text("runner", "local|sim", "where trials run: on this machine, or in a model of a cluster")
                     .by_default("local"),
                 Option::text("sim", "FILE",
                              "for --runner sim: a cluster (JSON) or recorded trials (CSV); no COMMAND is needed")});
}

void add_trial_options(OptionSet& set) {
  const host::StudyOptions defaults;
  set.add_group(
      "How trials run",
      {Option::text("ds-config", "FILE", "base configuration; needed where COMMAND names none"),
       count("start-profile-step", 0, "first step that is measured").by_default(defaults.start_profile_step),
       count("end-profile-step", 0, "last step that is measured").by_default(defaults.end_profile_step),
       Option::text("arg-mapping", "KEY=FLAG",
                    "keep a flag of COMMAND in step with a key of the configuration; may be given again")
           .when_repeated(Again::adds),
       Option::choice("trial-cwd", {"keep", "copy"}, "run trials in this folder or in a copy of it").by_default("keep"),
       Option::toggle("run-full-experiment", "run COMMAND with the best configuration at the end")});
}

OptionSet study_option_set() {
  OptionSet set;
  add_search_options(set);
  add_limit_options(set);
  add_placement_options(set);
  add_trial_options(set);
  set.add_group("Output", {Option::text("output-dir", "DIR", "the run directory").by_default("dsat-results/<name>"),
                           quiet_option(),
                           json_option("the result as one JSON object on standard output; all else on standard error"),
                           Option::toggle("version", "print the version and end"), help_option()});
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
  set.add_group("The experiment form",
                {Option::text("include", "FILE...", "files and folders to copy beside those of MODEL_DIR")
                     .also("-i")
                     .taking(Takes::several)
                     .when_repeated(Again::adds),
                 Option::text("search-runner-config", "FILE", "Determined's; its name and max_restarts are taken"),
                 count("max-search-runner-restarts", 0,
                       "take the search up again so often if dsat-host or a plugin dies; 0: never")
                     .by_default(kDefaultSearchRunnerRestarts)});
  return set;
}

OptionSet resume_options() {
  OptionSet set;
  set.add_group("Options", {max_trials_option().by_default("as before"),
                            max_concurrent_option().by_default("as before"), time_budget_option(), quiet_option(),
                            json_option("the result as one JSON object on standard output; all else on standard error"),
                            help_option()});
  return set;
}

OptionSet show_options() {
  OptionSet set;
  set.add_group("Options", {json_option("the whole study as one JSON object"),
                            Option::toggle("csv", "its trials as a table that --runner sim --sim FILE.csv replays"),
                            help_option()});
  return set;
}

OptionSet plugins_options() {
  OptionSet set;
  set.add_group("Options", {json_option("the plugins as one JSON object"), help_option()});
  return set;
}

OptionSet estimate_options() {
  OptionSet set;
  set.add_group(
      "The training",
      {Option::number("num-params", "parameters of the model: 7.5e9").from(1),
       Option::number("trainable-params", "those that are trained").from(0).by_default("all"),
       Option::integer("world-size", "devices, all of them data-parallel").from(1),
       Option::text("precision", "NAME", "fp16, bf16 or fp32").by_default("fp16"),
       Option::text("optimizer", "NAME", "adam, adamw, sgd or sgd-momentum").by_default("adam"),
       Option::size("device-memory", "memory of one device: gives the maximum micro batch"),
       Option::choice("offload-optimizer", {"cpu", "none"}, "optimizer states in host memory (stages 2 and 3)")
           .by_default("none"),
       Option::choice("offload-param", {"cpu", "none"}, "parameters in host memory (stage 3)").by_default("none")});
  set.add_group(
      "The transformer, for its activations: all of the first four or none",
      {Option::integer("layers", "transformer layers").from(1), Option::integer("hidden", "hidden size").from(1),
       Option::integer("heads", "attention heads").from(1), Option::integer("seq", "tokens of one sample").from(1),
       Option::toggle("flash-attention", "attention scores are not kept"),
       Option::text("checkpointing", "NAME", "activation checkpointing: none, selective or full").by_default("none")});
  set.add_group("Output", {json_option("the estimate as one JSON object"), help_option()});
  return set;
}

}  // namespace dsat::cli
