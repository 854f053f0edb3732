// A study's settings, resolved and checked. create() makes a plan from the options, resume() reads it from the journal.
//
// After this point nothing reads options, environment variables or the user's files. Threading: plain values. Errors:
// dsat::Error, one line.
#ifndef DSAT_HOST_PLAN_PLAN_H_
#define DSAT_HOST_PLAN_PLAN_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "command/command_template.h"
#include "dsat/config/space.h"
#include "dsat/host/plugins.h"
#include "dsat/host/settings.h"
#include "dsat/host/study.h"
#include "slots/slots.h"

namespace dsat::host {

struct StrategyPlan {
  PluginInfo plugin;
  Json options;                           // a value for every declared option
  uint32_t journalled_state_version = 0;  // of the plugin that saved the states
  std::string sha256;                     // of the plugin's file; a resumed study loads only this file
};

struct Plan : StudyLimits,
              Comparison,
              TrialTimeouts,
              SearchTarget,
              BatchBounds,
              SearchSettings,
              ClusterOptions,
              TrialMeasurement,
              TrialSetup,
              PluginProcesses {
  std::string name;
  std::filesystem::path dir;          // empty: no files are written
  std::vector<std::string> command;   // empty: a simulation without command
  std::filesystem::path config_file;  // the file of user_config; empty: the experiment file has it
  Json user_config;                   // with config_overwrites merged in, in DeepSpeed's form
  Json space_file;                    // or null
  std::string space_name;             // for messages while the options are checked; empty in a resumed plan
  std::string training_file;          // as space_name: the YAML of the command that has keys of the space file
  bool hugging_face = false;          // the command may fill in "auto", as Hugging Face's Trainer does
  std::string precision;              // "bf16" or "fp16" by the command's flags and files; empty: neither
  bool maximise = true;               // whether a larger metric is better
  Json experiment;                    // or null
  StrategyPlan profiler, searcher;
  SlotPlan slots;
  std::optional<Simulation> simulation;

  // Derived from the members above for a data-parallel size, and again if a trial reports another world size.
  int64_t data_parallel_size = 1;
  std::optional<config::EngineVersion> engine_version{};  // of DeepSpeed, once a trial has reported it
  config::Space space;                                    // has the stages of zero_stages that the user's keys allow
  Json base_config;                                       // axes have their first value, batch sizes are complete
  std::vector<std::string> notices;

  // The table of all fields that the journal keeps unchanged: those of the groups and the plan's own.
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"name"}, self.name);
    visitor(Setting{"command"}, self.command);
    visitor(Setting{"config_file"}, self.config_file);
    visitor(Setting{"user_config"}, self.user_config);
    visitor(Setting{"space_file"}, self.space_file);
    visitor(Setting{"hugging_face"}, self.hugging_face);
    visitor(later_setting(Setting{"precision"}), self.precision);
    visitor(Setting{"maximise"}, self.maximise);
    visitor(Setting{"experiment"}, self.experiment);
    TrialSetup::visit(self, visitor);
    SearchTarget::visit(self, visitor);
    SearchSettings::visit(self, visitor);
    BatchBounds::visit(self, visitor);
    StudyLimits::visit(self, visitor);
    Comparison::visit(self, visitor);
    TrialTimeouts::visit(self, visitor);
    TrialMeasurement::visit(self, visitor);
    PluginProcesses::visit(self, visitor);
    ClusterOptions::visit(self, visitor);
  }

  config::RuleOptions rules() const;
  config::RuleOptions world_rules() const;        // for the devices only, not for the search's micro batches
  int concurrency() const;                        // how many trials can run at once
  TrialShape shape_of(const Json& config) const;  // the slots of a trial with this configuration
  bool lacks_configuration() const;               // only parts of the command are tuned, by --metric-pattern
  std::string config_name() const;                // for messages
  Error in_config(const Error& error) const;      // adds the configuration's name
  // The precision from the command's flags, if the configuration leaves it open; empty: none.
  std::string filled_in_precision() const;
};

// Resolves options; runs nothing and writes nothing.
Plan make_plan(const StudyOptions& options);

// Returns the request with which the plan's command is read again, for trials and for the best command.
CommandRequest request_of(const Plan& plan, const Environment& environment);

// The default folder of a study: the first free name. Another study may still take it.
std::filesystem::path default_output_dir(const Plan& plan);

// Derives the members that depend on the data-parallel size.
void derive_space(Plan& plan, int64_t data_parallel_size);

// Loads the chosen plugin, with a value for each of its options.
StrategyPlan choose_strategy(const StrategyChoice& choice, PluginKind kind, const PluginProcesses& processes,
                             bool is_kept);

// Loads a plugin that a journal names. The id must be the same; the file too, unless `accept_changed`.
void load_plugin(StrategyPlan& plan, const PluginProcesses& processes, bool accept_changed);

// Converts the part of a plan that the journal keeps. Derived members are derived again; no plugin is loaded. A
// program's own simulation has no surface afterwards.
Json to_json(const Plan& plan);
Plan plan_from_json(const Json& json);

// Converts the fields in the table. Throws DSAT_INTERNAL if a field is missing or has an impossible value.
Json settings_to_json(const Plan& plan);
void read_settings(const Json& json, Plan& plan);

// Returns the settings that `show` prints.
Json settings_of(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_PLAN_H_
