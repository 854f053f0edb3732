// What `dsat-trial --trial` takes from the command line beside the options of every training program (world_options.h).
//
// Errors: dsat::Error, one line that names the option and its text. Threading: pure functions.
#ifndef DSAT_TRAINER_SETTINGS_TRIAL_OPTIONS_H_
#define DSAT_TRAINER_SETTINGS_TRIAL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::trainer {

struct TrialOptions {
  std::string library;
  Json experiment = Json::object();
  std::optional<int64_t> steps, epochs;  // one of them; neither: one epoch
  int64_t validate_every = 0;            // optimizer steps; 0: at the end of each epoch
  int64_t report_every = 1;              // optimizer steps
  int64_t checkpoint_every = 0;          // optimizer steps; 0: at the end
  std::string weights;                   // a file with the engine's initial weights; empty: none
  std::string checkpoints;               // a folder; empty: no checkpoints
  std::string metrics;                   // a file; empty: none
  std::string tensorboard;               // a folder; empty: the context's default
};

// Whether a command line is one for a trial's library.
bool names_trial(const std::vector<std::string>& args);

// `arguments`: those that parse_world_options() has left. Reads the experiment's file.
TrialOptions parse_trial_options(const std::vector<std::string>& arguments);

// The text of --trial LIB --help.
std::string trial_options_help();

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_TRIAL_OPTIONS_H_
