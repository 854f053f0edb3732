// Running a study: options in, events and a result out.
//
// Purpose: the library behind dsat-host, for programs that embed the search. It never prints, never aborts, throws
//   nothing, and leaves signals alone.
// Threading: Study::run starts the study's control thread and waits for it; Observer is called on that thread, one
//   call at a time. request_stop is legal from any thread, at any time, from a signal handler too.
// Ownership: a Study owns its plugins, trials and journal; when run returns no trial process is left.
#ifndef DSAT_HOST_STUDY_H_
#define DSAT_HOST_STUDY_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsat/host/record.h"
#include "dsat/host/simulation.h"
#include "dsat/host/status.h"

namespace dsat::host {

struct StrategyChoice {
  std::string plugin;             // a path, or a bare name
  Json options = Json::object();  // {name: text as typed, or a JSON value}; unknown names are refused
};

enum class TrialCwd { keep, copy };

struct StudyOptions {
  std::vector<std::string> command;      // the user's training command
  std::filesystem::path cwd;             // where it runs; empty: the current folder
  std::vector<std::string> environment;  // "NAME=value"; empty: this process's own
  std::string name;                      // of the study; empty: the script's or the program's

  StrategyChoice searcher;
  StrategyChoice profiler{"profiler", Json::object()};
  std::string metric = "FLOPS_per_gpu";  // or an alias
  std::vector<int> zero_stages;          // empty: those that the searcher wants, else 1, 2 and 3
  uint64_t seed = 42;
  int start_profile_step = 3, end_profile_step = 5;

  int max_trials = 50;
  std::optional<int> early_stopping;  // end after so many trials of the searcher without a better one
  int max_concurrent_trials = 16;
  std::optional<int> max_slots;        // of all running trials together
  std::optional<int> slots;            // nullopt: found, see docs/trial.md
  std::optional<int> slots_per_trial;  // nullopt: the command's own flag, else all
  // Several hosts, as DeepSpeed's users name them (docs/resources.md). Empty: the launcher's own flags in the command.
  std::filesystem::path hostfile;
  std::string include, exclude;          // "worker-0@worker-1:0,2"; at most one of the two
  std::vector<int> num_gpus, num_nodes;  // GPUs of each node, and nodes, of a trial; several values are searched
  std::optional<uint64_t> device_memory_bytes;
  std::optional<std::filesystem::path> ds_config;
  std::optional<std::filesystem::path> space_file;
  std::optional<int64_t> global_batch, max_train_batch_size, max_micro_batch;
  int64_t min_micro_batch = 1;
  bool default_axes = true;  // false: tune stage, micro batch and what configuration and space file list, nothing else
  std::optional<int> profile_trials;                              // nullopt: as the searcher wants, else 3
  std::vector<std::pair<std::string, std::string>> arg_mappings;  // config key -> flag of the command

  std::filesystem::path output_dir;  // empty: dsat-results/<name>
  bool replace_study = false;        // one that lies in output_dir is deleted first, unless another host works on it
  std::chrono::milliseconds trial_timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds no_progress_timeout{std::chrono::minutes(10)};
  std::optional<std::chrono::milliseconds> time_budget;
  TrialCwd trial_cwd = TrialCwd::keep;
  std::vector<std::filesystem::path> includes;  // with TrialCwd::copy: files and folders copied beside those of cwd

  // For a study that an experiment file describes (docs/trial.md).
  Json config_overwrites;              // merged over the configuration, leaf by leaf; null: nothing
  bool config_by_environment = false;  // ds_config (none: config_overwrites alone) is the configuration, and the
                                       // command need not name it: the script reads DSAT_DS_CONFIG or DSAT_HPARAMS
  std::vector<std::string> variables;  // "NAME=value" for every trial; kept in the journal, as `environment` is not
  Json hyperparameters;                // an object: every trial finds its own in the file DSAT_HPARAMS; null: none
  Json experiment;                     // kept with the study for whoever reads it; null: nothing

  std::filesystem::path launcher;  // dsat-launch; empty: beside this program, else <libexecdir>/dsat

  // Trials are simulated: no command is needed, none is run, and times are virtual.
  std::optional<Simulation> simulation;
};

// What may change when a study is taken up again.
struct ResumeOptions {
  std::optional<int> max_trials, max_concurrent_trials;
  std::optional<std::chrono::milliseconds> time_budget;
  std::vector<std::string> environment;  // empty: this process's own
  std::filesystem::path launcher;
};

// The configuration file that a command names, as a study would find it, relative to `cwd`; nullopt: none, or several.
std::optional<std::filesystem::path> config_file_of(const std::vector<std::string>& command,
                                                    const std::filesystem::path& cwd);

// Receives what happens, in order. Every method may be left alone.
class Observer {
 public:
  enum class Severity { debug, info, warning, error };
  virtual ~Observer() = default;
  virtual void on_log(Severity, std::string_view /*message*/) {}
  virtual void on_trial_submitted(const TrialRecord&) {}
  virtual void on_trial_started(const TrialRecord&) {}
  virtual void on_trial_ended(const TrialRecord&) {}
  virtual void on_profile(const Json& /*profile*/) {}
  virtual void on_best(const BestRecord&) {}
};

struct StudyResult {
  StudyStatus status = StudyStatus::failed;
  std::string reason;  // one line
  std::optional<BestRecord> best;
  std::map<Outcome, int> counts;
  std::filesystem::path dir;
};

class Study {
 public:
  // Checks everything that can be checked without running a trial; on an error nothing was run and nothing written.
  static Result<std::unique_ptr<Study>> create(StudyOptions options);
  // Takes up the study in `dir`. One that another host works on is Status::invalid.
  static Result<std::unique_ptr<Study>> resume(const std::filesystem::path& dir, ResumeOptions options);
  ~Study();

  // Runs to the end; once.
  StudyResult run(Observer& observer);

  // First call: stop the trials, save, return with `interrupted`; second: the same without grace. [any-thread]
  void request_stop() noexcept;

  const std::filesystem::path& dir() const;
  // The settings as resolved: slots, data-parallel size, stages, plugins; `study` of `show --json`.
  const Json& settings() const;

  class Impl;

 private:
  explicit Study(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_H_
