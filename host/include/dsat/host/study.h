// Runs a study: takes options, reports events and returns a result.
//
// Purpose: the library of dsat-host, for programs that embed the search. It never prints, aborts or throws, and leaves
//   signals alone. create() and resume() fail if SIGCHLD is ignored, because the end of a trial would be lost.
// Threading: Study::run starts the study's control thread and waits for it. Observer is called on that thread, one call
//   at a time. Any thread and any signal handler may call request_stop at any time.
// Ownership: a Study owns its plugins, trials and journal. When run returns, no process of a trial is left.
#ifndef DSAT_HOST_STUDY_H_
#define DSAT_HOST_STUDY_H_

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/record.h"
#include "dsat/host/settings.h"
#include "dsat/host/simulation.h"
#include "dsat/host/status.h"

namespace dsat::host {

struct StrategyChoice {
  std::string plugin;             // a path, or a bare name
  Json options = Json::object();  // {name: text as typed, or a JSON value}; an unknown name is an error
};

// A configuration file that the caller has read. The study does not read it again, because a pipe gives its bytes once.
struct ReadConfiguration {
  std::filesystem::path file;  // the path that ds_config or the command names, below cwd
  Json content;
};

// All options of a study. The groups of settings are its base classes: options.max_trials is StudyLimits::max_trials.
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
  std::vector<std::string> environment;  // "NAME=value"; empty: that of this process
  std::string name;                      // of the study; empty: the name of the script or program

  StrategyChoice searcher;
  StrategyChoice profiler{"profiler", Json::object()};

  std::optional<std::filesystem::path> ds_config;
  std::optional<ReadConfiguration> already_read;
  std::optional<std::filesystem::path> space_file;
  Json config_overwrites;  // merged over the configuration, leaf by leaf; null: nothing
  Json experiment;         // the experiment file, kept for the script; null: nothing

  std::filesystem::path output_dir;  // empty: dsat-results/<name>
  bool trust_folder = false;         // use a run directory that another user made or can write to
  bool replace_study = false;        // delete a study in output_dir first, unless another host runs it
  std::filesystem::path launcher;    // dsat-launch; empty: beside this program, else <libexecdir>/dsat

  // With a value, trials are simulated: no command is needed or run, and times are virtual.
  std::optional<Simulation> simulation;
};

// The options that may change when a study is resumed.
struct ResumeOptions {
  std::optional<int> max_trials, max_concurrent_trials;
  std::optional<std::chrono::milliseconds> time_budget;
  // Does a study whose time budget is spent continue if the new time budget is not longer?
  bool same_time_goes_on = true;
  std::chrono::milliseconds time_used{0};  // time of the budget that the process before this one has used
  std::string budget;                      // device-hours of all trials, with those that have ended; empty: as before
  std::optional<std::chrono::milliseconds> plugin_timeout;  // of one call into a plugin's own process
  // This searcher continues the search; all trials that have ended become its observations. The earlier searcher is not
  // loaded.
  std::optional<StrategyChoice> searcher;
  bool trust_folder = false;             // run what the journal of another user names
  bool accept_changed_plugins = false;   // a plugin's file may have changed since the study was started
  std::vector<std::string> environment;  // empty: that of this process
  std::filesystem::path launcher;
};

// The configuration file that a command names, relative to `cwd`, as a study would find it; nullopt: none, or several.
std::optional<std::filesystem::path> config_file_of(const std::vector<std::string>& command,
                                                    const std::filesystem::path& cwd);

// Receives the events of a study, in order. Override the methods that you need. An exception of theirs does not end the
// study; the first one is passed to on_log.
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
  // The study has ended and is written. The journal is closed when this returns, so stop reading it here.
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
  std::string metric;                // canonical name
  std::optional<TwinCheck> check{};  // of the best
};

// A Study owns its run directory from create() or resume() to its destruction, even after run() has returned. Until
// then no other program and no other Study of this one can use the directory.
class Study {
 public:
  // Checks everything that can be checked without a trial. After an error nothing has been run or written.
  static Result<std::unique_ptr<Study>> create(StudyOptions options);
  // Resumes the study in `dir`. Status::invalid if another host runs it.
  static Result<std::unique_ptr<Study>> resume(const std::filesystem::path& dir, ResumeOptions options);
  ~Study();

  // Runs the study to its end. May be called once.
  StudyResult run(Observer& observer);

  // The first call stops the trials, saves, and returns `interrupted`; the second does so without grace. [any-thread]
  void request_stop() noexcept;

  const std::filesystem::path& dir() const;
  // The resolved settings: slots, data-parallel size, stages, plugins; `study` of `show --json`.
  const Json& settings() const;

  class Impl;

 private:
  explicit Study(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_H_
