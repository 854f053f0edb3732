// The command line of dsat-trial.
//
// Errors: dsat::Error, one line that names the option and its text. Threading: pure functions.
#ifndef DSAT_TRAINER_SETTINGS_OPTIONS_H_
#define DSAT_TRAINER_SETTINGS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/trainer/world_options.h"

namespace dsat::trainer {

enum class ModelKind { gpt, resnet, mlp };

struct ModelOptions {
  ModelKind kind = ModelKind::gpt;
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t seq = 64;
  int64_t vocab = 512;
  int64_t depth = 18;
  int64_t image = 32;  // pixels a side
};

struct Options : WorldOptions {
  ModelOptions model;
  std::string torchscript;  // a file; empty: one of the built-in models
  std::string input_spec;   // of the TorchScript module
  std::string data;         // a file with its inputs and targets; empty: random ones by input_spec
  std::string loss;         // "mean", "cross-entropy", "mse"; empty: by the output's shape, or the target's type
  std::optional<int64_t> steps;
  bool activation_checkpointing = false;  // recompute activations in backward
  std::string weights;                    // a file with the initial weights; empty: random ones
  std::string checkpoint_dir;             // empty: none are saved
  int64_t checkpoint_every = 0;           // optimizer steps; 0: only after the last
  bool help = false;
};

// `args` without the program's name.
Options parse_options(const std::vector<std::string>& args);

// Depths that --model resnet knows: 18, 34, 50, 101, 152, and 6n + 2 from 8 to 200.
bool is_resnet_depth(int64_t depth);

// The text of --help.
std::string options_help();

// What completes command lines in a shell; without a shell the manual page.
std::string options_manual(const std::string& shell = "");

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_OPTIONS_H_
