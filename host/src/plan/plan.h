// A study's settings, resolved and checked: what create() makes of the options and resume() reads from the journal.
//
// Purpose: nothing below this point looks at options, environment variables or the user's files again.
// Threading: plain values. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_PLAN_PLAN_H_
#define DSAT_HOST_PLAN_PLAN_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dsat/config/space.h"
#include "dsat/host/plugins.h"
#include "dsat/host/settings.h"
#include "dsat/host/study.h"
#include "slots/slots.h"

namespace dsat::host {

struct StrategyPlan {
  PluginInfo plugin;
  Json options;                           // a value for every declared option
  uint32_t journalled_state_version = 0;  // of the plugin that wrote the saved states
  std::string sha256;                     // of the plugin's file: a resumed study loads no other one
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
  std::filesystem::path dir;          // empty: nothing is written
  std::vector<std::string> command;   // empty: a simulation without one
  std::filesystem::path config_file;  // that user_config was read from; empty: the experiment file holds it
  Json user_config;                   // the user's with config_overwrites merged in, as DeepSpeed reads it
  Json space_file;                    // or null
  std::string space_name;             // for messages while the options are checked; a resumed plan has none
  bool hugging_face = false;          // the command may fill in "auto", as Hugging Face's Trainer does
  bool maximise = true;               // the metric
  Json experiment;                    // or null
  StrategyPlan profiler, searcher;
  SlotPlan slots;
  std::optional<Simulation> simulation;

  // Derived from the above for a data-parallel size; made again when the profile trial reports another world size.
  int64_t data_parallel_size = 1;
  config::Space space;  // its stages are those of zero_stages that the user's keys allow
  Json base_config;     // axes replaced by their first value, batch sizes complete
  std::vector<std::string> notices;

  // The table of all fields that the journal keeps as they are: the groups', and the plan's own.
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor(Setting{"name"}, self.name);
    visitor(Setting{"command"}, self.command);
    visitor(Setting{"config_file"}, self.config_file);
    visitor(Setting{"user_config"}, self.user_config);
    visitor(Setting{"space_file"}, self.space_file);
    visitor(Setting{"hugging_face"}, self.hugging_face);
    visitor(Setting{"maximise"}, self.maximise);
    visitor(later_setting("experiment"), self.experiment);
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
  config::RuleOptions world_rules() const;        // of the devices alone, not of the search's micro batches
  int concurrency() const;                        // trials that can really run at once
  TrialShape shape_of(const Json& config) const;  // what a trial of this configuration takes
  std::string config_name() const;                // for messages
  Error in_config(const Error& error) const;      // one that names the configuration too
  // What the command's flags give in place of a precision that the configuration leaves open; empty: nothing.
  std::string filled_in_precision() const;
};

// Resolves options; nothing is run and nothing written.
Plan make_plan(const StudyOptions& options);

// The folder of a study that was given none: the first name that is free now, which another study may take yet.
std::filesystem::path default_output_dir(const Plan& plan);

// Fills in what depends on the data-parallel size.
void derive_space(Plan& plan, int64_t data_parallel_size);

// The plugin that was chosen, loaded, with a value for each of its options.
StrategyPlan choose_strategy(const StrategyChoice& choice, PluginKind kind, const PluginProcesses& processes,
                             bool is_kept);

// Loads a plugin that a journal names. The file must be the same as then unless `accept_changed`; the id must always be
// the same.
void load_plugin(StrategyPlan& plan, const PluginProcesses& processes, bool accept_changed);

// All that the journal must keep of a plan, and back. The derived members are made again; no plugin is loaded. A
// simulation of a program's own comes back without its surface.
Json to_json(const Plan& plan);
Plan plan_from_json(const Json& json);

// The part of both that the table of fields makes. Throws DSAT_INTERNAL if a field is missing or cannot have its value.
Json settings_to_json(const Plan& plan);
void read_settings(const Json& json, Plan& plan);

// What `show` prints of a plan.
Json settings_of(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_PLAN_H_
