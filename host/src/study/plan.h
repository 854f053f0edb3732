// A study's settings, resolved and checked: what create() makes of the options and resume() reads from the journal.
//
// Purpose: nothing below this point looks at options, environment variables or the user's files again.
#ifndef DSAT_HOST_STUDY_PLAN_H_
#define DSAT_HOST_STUDY_PLAN_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsat/config/space.h"
#include "dsat/host/plugins.h"
#include "dsat/host/study.h"
#include "slots/slots.h"

namespace dsat::host {

struct StrategyPlan {
  PluginInfo plugin;
  Json options;                           // a value for every declared option
  uint32_t journalled_state_version = 0;  // of the plugin that wrote the saved states
  std::string sha256;                     // of the plugin's file: a resumed study says when it has changed
};

struct Plan {
  std::string name;
  std::filesystem::path dir;  // empty: nothing is written
  std::filesystem::path cwd;
  std::vector<std::string> command;   // empty: a simulation without one
  std::filesystem::path config_file;  // that user_config was read from; empty: the experiment file holds it
  Json user_config;                   // as the user wrote it, config_overwrites merged in
  Json space_file;                    // or null
  std::vector<std::pair<std::string, std::string>> arg_mappings;
  bool hugging_face = false;
  TrialCwd trial_cwd = TrialCwd::keep;
  std::vector<std::filesystem::path> includes;  // absolute
  bool config_by_environment = false;
  std::vector<std::string> variables;
  Json hyperparameters, experiment;  // or null

  StrategyPlan profiler, searcher;
  uint64_t seed = 42;
  std::string metric;  // canonical
  bool maximise = true;
  std::vector<int> zero_stages;  // as wanted; `space` has those that the user's keys allow
  int start_profile_step = 3, end_profile_step = 5;

  int max_trials = 50;
  std::optional<int> early_stopping;
  int max_concurrent_trials = 16;
  std::optional<int> max_slots;
  SlotPlan slots;
  std::optional<Simulation> simulation;
  std::optional<uint64_t> device_memory_bytes;  // given by the user
  std::optional<int64_t> global_batch, max_train_batch_size, max_micro_batch;
  int64_t min_micro_batch = 1;
  bool default_axes = true;
  int profile_trials = 3;
  std::chrono::milliseconds trial_timeout{0}, no_progress_timeout{0};
  std::optional<std::chrono::milliseconds> time_budget;

  // Derived from the above for a data-parallel size; made again when the profile trial reports another world size.
  int64_t data_parallel_size = 1;
  config::Space space;
  Json base_config;  // axes replaced by their first value, batch sizes complete
  std::vector<std::string> notices;

  config::RuleOptions rules() const;
  int concurrency() const;                        // trials that can really run at once
  TrialShape shape_of(const Json& config) const;  // what a trial of this configuration takes
  std::string config_name() const;                // for messages
};

// Resolves options; nothing is run and nothing written.
Result<Plan> make_plan(const StudyOptions& options);

// Fills in what depends on the data-parallel size. Throws dsat::Error.
void derive_space(Plan& plan, int64_t data_parallel_size);

// All that the journal must keep of a plan, and back. The derived members are made again.
Json to_json(const Plan& plan);
Result<Plan> plan_from_json(const Json& json);

// What `show` prints of a plan.
Json settings_of(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_PLAN_H_
