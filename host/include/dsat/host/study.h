// Running a study: options in, events and a result out.
//
// Purpose: the library behind dsat-host, for programs that embed the search. It never prints, never aborts, throws
//   nothing, and leaves signals alone. It must not run where SIGCHLD is ignored: the end of a trial would be lost, so
//   create() and resume() refuse it.
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
#include "dsat/host/settings.h"
#include "dsat/host/simulation.h"
#include "dsat/host/status.h"

namespace dsat::host {

struct StrategyChoice {
  std::string plugin;             // a path, or a bare name
  Json options = Json::object();  // {name: text as typed, or a JSON value}; unknown names are refused
};

// A configuration file that the caller has read: the study does not read it again, since a pipe gives its bytes once.
struct ReadConfiguration {
  std::filesystem::path file;  // as ds_config or the command names it, below cwd
  Json content;
};

// All that a study can be asked for. The groups of settings are its bases: options.max_trials is that of StudyLimits.
struct StudyOptions : StudyLimits,
                      Comparison,
                      TrialTimeouts,
                      SearchTarget,
                      BatchBounds,
                      SearchSettings,
                      SlotOptions,
                      ClusterOptions,
                      TrialMeasurement,
                      TrialSetup,
                      PluginProcesses {
  std::vector<std::string> command;      // the user's training command
  std::vector<std::string> environment;  // "NAME=value"; empty: this process's own
  std::string name;                      // of the study; empty: the script's or the program's

  StrategyChoice searcher;
  StrategyChoice profiler{"profiler", Json::object()};

  std::optional<std::filesystem::path> ds_config;
  std::optional<ReadConfiguration> already_read;
  std::optional<std::filesystem::path> space_file;
  Json config_overwrites;  // merged over the configuration, leaf by leaf; null: nothing
  Json experiment;         // kept with the study for whoever reads it; null: nothing

  std::filesystem::path output_dir;  // empty: dsat-results/<name>
  bool replace_study = false;        // one that lies in output_dir is deleted first, unless another host works on it
  std::filesystem::path launcher;    // dsat-launch; empty: beside this program, else <libexecdir>/dsat

  // Trials are simulated: no command is needed, none is run, and times are virtual.
  std::optional<Simulation> simulation;
};

// What may change when a study is taken up again.
struct ResumeOptions {
  std::optional<int> max_trials, max_concurrent_trials;
  std::optional<std::chrono::milliseconds> time_budget;
  // Does a study that ended for want of time go on with a time budget that is no longer than the one it had?
  bool same_time_goes_on = true;
  std::chrono::milliseconds time_used{0};  // of the time budget, by a process that this one takes the place of
  std::string budget;  // device-hours of all trials, those that have ended included; empty: as before
  std::optional<std::chrono::milliseconds> plugin_timeout;  // of one call of a plugin that runs apart
  std::optional<uint64_t> plugin_memory_bytes;              // of its process
  // This searcher takes the search over: all trials that have ended are observations to it. The earlier one is not
  // loaded.
  std::optional<StrategyChoice> searcher;
  bool accept_changed_plugins = false;   // a plugin's file may be another one than when the study was started
  std::vector<std::string> environment;  // empty: this process's own
  std::filesystem::path launcher;
};

// The configuration file that a command names, as a study would find it, relative to `cwd`; nullopt: none, or several.
std::optional<std::filesystem::path> config_file_of(const std::vector<std::string>& command,
                                                    const std::filesystem::path& cwd);

// Receives what happens, in order. Override the methods that you need. What they throw is dropped, and the first time
// passed to on_log: the study goes on.
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
  // The study has ended and is written. The journal is closed when this returns: whoever reads it ends that here.
  virtual void on_closing() {}
};

struct StudyResult {
  StudyStatus status = StudyStatus::failed;
  std::string reason;  // one line
  std::optional<BestRecord> best;
  std::optional<Gain> gain;  // of the best over the user's own configuration
  std::optional<EndToEnd> end_to_end;
  std::map<Outcome, int> counts;
  std::filesystem::path dir;
  std::string metric;  // its canonical name
};

// A Study owns its run directory from create() or resume() to its destruction: no other program, and no second Study of
// this one, can take the directory up before that, even after run() has returned.
class Study {
 public:
  // Checks everything that can be checked without running a trial; on an error nothing was run and nothing written.
  static Result<std::unique_ptr<Study>> create(StudyOptions options);
  // Takes up the study in `dir`. If another host works on it: Status::invalid.
  static Result<std::unique_ptr<Study>> resume(const std::filesystem::path& dir, ResumeOptions options);
  ~Study();

  // Runs the study to its end. May be called once.
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
