// Sorts the options of dsat-host into the groups of --help; dsat/host/settings.h declares the options of settings. A
// form of the program adds options to a set or removes some.
#include "commands/host_options.h"

#include <utility>

#include "deepspeed/command_line.h"
#include "determined/search_runner_config.h"
#include "dsat/host/study.h"
#include "options/study_options.h"
#include "scaffold/new_plugin.h"

namespace dsat::cli {
namespace {

Option help_option() { return Option::toggle("help", "print this and end").also("-h"); }
Option help_all_option() {
  return Option::choice("help", {"all"}, "print the options that most people use, or all, and end")
      .shown_as("[all]")
      .taking(Takes::word)
      .when_repeated(Again::replaces)
      .also("-h");
}
Option json_option(const char* help) { return Option::toggle("json", help); }
Option events_option() {
  return Option::integer("events", "write each event as a line of JSON to this open file descriptor")
      .from(3, Option::kLargestInt)
      .shown_as("FD");
}
Option quiet_option() { return Option::toggle("quiet", "print no progress, only warnings, errors and the result"); }
Option verbose_option() { return Option::toggle("verbose", "print peak, reason and note of each trial").also("-v"); }

Option trust_folder_option() {
  return Option::toggle("trust-folder", "use a run directory that another user made, or that others can write to");
}

Option full_experiment_option() {
  return Option::toggle("run-full-experiment", "run COMMAND with the best configuration at the end");
}

// An integer that fits an int of the library.
Option count(const char* name, int64_t least, const char* help) {
  return Option::integer(name, help).from(least, Option::kLargestInt);
}

void add_search_options(OptionSet& set) {
  const host::StudyOptions defaults;
  set.add_group("What to search, and how",
                {Option::text("searcher", "PLUGIN", "guided, asha, binary, random, grid, or the path of a plugin")
                     .by_default(kDefaultSearcher),
                 Option::text("profiler", "PLUGIN", "the plugin that profiles the model first: a name or a path")
                     .by_default(defaults.profiler.plugin),
                 setting_option("metric"), setting_option("zero-stages"),
                 Option::text("space", "FILE", "further keys to tune and their values, as JSON"),
                 setting_option("global-batch"), setting_option("max-train-batch-size"),
                 setting_option("min-micro-batch"), setting_option("max-micro-batch"), setting_option("random-seed")});
}

void add_plugin_process_options(OptionSet& set) {
  set.add_group("Plugins that do not come with dsat run in a process of their own",
                {setting_option("isolation"), setting_option("plugin-timeout")});
}

void add_limit_options(OptionSet& set) {
  set.add_group("Limits", {setting_option("max-trials"), setting_option("max-concurrent-trials"),
                           setting_option("max-slots"), setting_option("time-budget"), setting_option("budget"),
                           setting_option("profile-trials"), setting_option("trial-timeout"),
                           setting_option("no-progress-timeout"), setting_option("max-restarts")});
}

void add_comparison_options(OptionSet& set) {
  set.add_group("Against your own configuration",
                {setting_option("no-baseline"), setting_option("finals"), setting_option("verify"),
                 setting_option("keep-all-changes"), setting_option("no-twin"), setting_option("memory-margin")});
}

Option runner_option() {
  return Option::text("runner", "local|pilot|slurm|sim",
                      "where trials run: on this machine, as steps of the present Slurm allocation, each as a Slurm "
                      "job, or in a simulation")
      .by_default("local; in an allocation pilot");
}

// An experiment is not simulated.
Option runner_option_of_experiments() {
  Option option = runner_option();
  option.value_name = "local|pilot|slurm";
  option.help = "where trials run: on this machine, as steps of the present Slurm allocation, or each as a Slurm job";
  return option;
}

void add_placement_options(OptionSet& set, Option runner) {
  set.add_group("Where trials run",
                {setting_option("slots"), setting_option("slots-per-trial"),
                 setting_option("num-gpus").also("--num-accelerators").absent_as("-1"),
                 setting_option("num-nodes").absent_as("-1"), setting_option("hostfile"),
                 setting_option("include").absent_as(""), setting_option("exclude").absent_as(""),
                 setting_option("device-memory"), std::move(runner), setting_option("runner-command"),
                 Option::text("sim", "FILE",
                              "for --runner sim: a cluster (JSON, shipped name) or trials (CSV); needs no COMMAND")});
}

void add_slurm_options(OptionSet& set) {
  set.add_group("Slurm", {setting_option("partition"), setting_option("account"), setting_option("qos"),
                          setting_option("constraint"), setting_option("gres"), setting_option("job-time"),
                          setting_option("slurm-option"), setting_option("slurm-launch")});
}

void add_trial_options(OptionSet& set) {
  set.add_group(
      "How trials run",
      {Option::text("ds-config", "FILE", "the base configuration, if COMMAND does not name one"),
       setting_option("start-profile-step"), setting_option("end-profile-step"), setting_option("arg-mapping"),
       setting_option("trial-cwd"), setting_option("no-probe"), setting_option("inject"), setting_option("oom-pattern"),
       setting_option("loss-pattern"), setting_option("grad-norm-pattern"), setting_option("metric-pattern"),
       setting_option("smaller-is-better"), setting_option("tokens-per-sample"), setting_option("device"),
       full_experiment_option()});
}

OptionSet study_option_set(Option runner) {
  OptionSet set;
  add_search_options(set);
  add_limit_options(set);
  add_comparison_options(set);
  add_placement_options(set, std::move(runner));
  add_slurm_options(set);
  add_trial_options(set);
  add_plugin_process_options(set);
  set.add_group("Output",
                {Option::text("output-dir", "DIR", "the run directory").by_default("dsat-results/<name>"),
                 trust_folder_option(), quiet_option(), verbose_option(),
                 json_option("print the result as one JSON object on standard output, the rest on standard error"),
                 events_option(), Option::toggle("version", "print the version and end"), help_all_option()});
  return set;
}

}  // namespace

void hide(OptionSet& set, const char* name) {
  Option option = *set.find(std::string("--") + name);
  set.remove(name);
  option.hidden = true;
  set.add(std::move(option));
}

namespace {

void show_default(OptionSet& set, const char* name, const char* shown) {
  Option option = *set.find(std::string("--") + name);
  set.remove(name);
  set.add(std::move(option).by_default(shown));
}

}  // namespace

OptionSet tune_options() {
  OptionSet set = study_option_set(runner_option());
  add_deepspeed_options(set);
  return set;
}

OptionSet experiment_options() {
  OptionSet set = study_option_set(runner_option_of_experiments());
  set.remove("include");  // in this form --include names files, as in Determined's
  for (const char* of_other_forms : {"sim", "ds-config"}) hide(set, of_other_forms);
  show_default(set, "trial-cwd", "copy");
  set.add_group(
      "The experiment form",
      {Option::text("include", "FILE...", "files and folders to copy beside those of MODEL_DIR")
           .also("-i")
           .taking(Takes::several)
           .when_repeated(Again::adds),
       Option::text("search-runner-config", "FILE", "Determined's file; name and max_restarts are used"),
       count("max-search-runner-restarts", 0, "resume the search up to N times if dsat-host or a plugin dies; 0: never")
           .by_default(kDefaultSearchRunnerRestarts)});
  return set;
}

OptionSet resume_options() {
  OptionSet set;
  set.add_group(
      "Options",
      {setting_option("max-trials").by_default("as before"),
       setting_option("max-concurrent-trials").by_default("as before"), setting_option("time-budget"),
       setting_option("budget").by_default("as before"), full_experiment_option(),
       Option::text("searcher", "PLUGIN", "continue the search with this searcher and the trials that have ended")
           .by_default("as before"),
       Option::toggle("accept-changed-plugins", "allow a plugin's file that has changed since the study was started"),
       setting_option("plugin-timeout").by_default("as before"), trust_folder_option(), quiet_option(),
       verbose_option(),
       json_option("print the result as one JSON object on standard output, the rest on standard error"),
       events_option(), help_option()});
  return set;
}

OptionSet show_options() {
  OptionSet set;
  set.add_group("Options",
                {json_option("print the study as one JSON object"),
                 Option::toggle("csv", "print the trials as a table that --runner sim --sim FILE.csv replays"),
                 Option::toggle("follow", "print the progress until the study ends, then the study"), help_option()});
  return set;
}

OptionSet export_options() {
  OptionSet set;
  set.add_group(
      "Options",
      {Option::choice("format", {"csv", "json", "jsonl", "tensorboard", "mlflow", "prometheus"}, "the format"),
       Option::path("output", "PATH", "the file to write; for tensorboard and mlflow a folder").also("-o"),
       Option::text("mlflow-uri", "URL", "send the study to an MLflow server: http://HOST:PORT"), help_option()});
  return set;
}

OptionSet report_options() {
  OptionSet set;
  set.add_group("Options",
                {Option::path("output", "FILE", "the page").also("-o").by_default("DIR/report.html"), help_option()});
  return set;
}

OptionSet serve_options() {
  OptionSet set;
  constexpr int kLargestPort = 65535;
  set.add_group(
      "Options",
      {Option::integer("port", "the port on 127.0.0.1").from(1, kLargestPort).by_default("a free one"), help_option()});
  return set;
}

OptionSet best_options() {
  OptionSet set;
  set.add_group(
      "Options",
      {Option::integer("trial", "take the configuration of this trial instead of the best").from(0),
       json_option("print the configuration, its metrics and its command as one JSON object"), help_option()});
  return set;
}

OptionSet check_options() {
  OptionSet set;
  set.add_group("Options",
                {Option::toggle("repair", "make a sound journal of the rows that can be read, and keep the old file"),
                 trust_folder_option(), json_option("print the findings as one JSON object"), help_option()});
  return set;
}

OptionSet plugins_options() {
  OptionSet set;
  set.add_group("Options", {json_option("print the plugins as one JSON object"), help_option()});
  return set;
}

OptionSet validate_options() {
  OptionSet set;
  set.add_group("Options",
                {setting_option("plugin-timeout"), json_option("print the checks as one JSON object"), help_option()});
  return set;
}

OptionSet new_plugin_options() {
  OptionSet set;
  set.add_group("Options", {Option::choice("language", languages_of_plugins(), "the language of the plugin")
                                .also("-l")
                                .by_default(languages_of_plugins().front()),
                            help_option()});
  return set;
}

OptionSet man_options() {
  OptionSet set;
  set.add_group("Options", {help_option()});
  return set;
}

OptionSet estimate_options() {
  OptionSet set;
  set.add_group(
      "The training",
      {Option::number("num-params", "parameters of the model: 7.5e9").from(1),
       Option::number("trainable-params", "parameters that are trained").from(0).by_default("all"),
       Option::integer("world-size", "devices, all of them data-parallel").from(1),
       Option::text("precision", "NAME", "fp16, bf16 or fp32").by_default("fp16"),
       Option::text("optimizer", "NAME", "adam, adamw, sgd or sgd-momentum").by_default("adam"),
       Option::size("device-memory", "memory of one device: gives the maximum micro batch").from(Option::kLeastMemory),
       Option::choice("offload-optimizer", {"cpu", "none"}, "optimizer states in host memory (stages 1 to 3)")
           .by_default("none"),
       Option::choice("offload-param", {"cpu", "none"}, "parameters in host memory (stage 3)").by_default("none")});
  set.add_group(
      "The transformer, for its activations: give all of the first four or none",
      {Option::integer("layers", "transformer layers").from(1), Option::integer("hidden", "hidden size").from(1),
       Option::integer("heads", "attention heads").from(1), Option::integer("seq", "tokens of one sample").from(1),
       Option::toggle("flash-attention", "attention scores are not kept"),
       Option::text("checkpointing", "NAME", "activation checkpointing: none, selective or full").by_default("none")});
  set.add_group("Output", {json_option("print the estimate as one JSON object"), help_option()});
  return set;
}

}  // namespace dsat::cli
