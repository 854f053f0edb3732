// Declares the options of dsat-trial's own models and reads them from what the options of the world leave.
// The shape of a model is a table: one row an option, with the models that it has a meaning for.
#include "settings/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "dsat/cli/help.h"
#include "dsat/cli/manual.h"
#include "dsat/cli/values.h"
#include "dsat/error.h"
#include "settings/input_spec.h"
#include "settings/world_option_set.h"

namespace dsat::trainer {
namespace {

using cli_kit::Option;
using cli_kit::OptionSet;
using cli_kit::Values;

const std::vector<std::string> kModels{"gpt", "resnet", "mlp"};  // in the order of ModelKind

constexpr unsigned bit(ModelKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr unsigned kGpt = bit(ModelKind::gpt), kResnet = bit(ModelKind::resnet), kMlp = bit(ModelKind::mlp);

struct ShapeOption {
  const char* name;
  int64_t ModelOptions::*field;
  int64_t low, high;
  unsigned models;
  const char* help;
};
constexpr std::array<ShapeOption, 7> kShape{
    {{"layers", &ModelOptions::layers, 1, 10000, kGpt | kMlp, "gpt, mlp: layers"},
     {"hidden", &ModelOptions::hidden, 1, 1 << 20, kGpt | kMlp, "gpt, mlp: hidden size"},
     {"heads", &ModelOptions::heads, 1, 1 << 20, kGpt, "gpt: attention heads"},
     {"seq", &ModelOptions::seq, 2, 1 << 20, kGpt, "gpt: tokens of one sample"},
     {"vocab", &ModelOptions::vocab, 2, 1 << 26, kGpt, "gpt: size of the vocabulary"},
     {"depth", &ModelOptions::depth, 8, 200, kResnet, "resnet: 18, 34, 50, 101, 152 or 6n + 2 (8, 14, 20, ...)"},
     {"image", &ModelOptions::image, 8, 4096, kResnet, "resnet: pixels a side"}}};

OptionSet model_option_set() {
  const ModelOptions defaults;
  OptionSet set;
  std::vector<Option> shape{Option::choice("model", kModels, "what to train").by_default(kModels.front())};
  for (const ShapeOption& option : kShape) {
    shape.push_back(
        Option::integer(option.name, option.help).from(option.low, option.high).by_default(defaults.*option.field));
  }
  add_options(set, "A built-in model, on random data", std::move(shape));
  add_options(set, "A model of your own",
              {Option::path("torchscript", "FILE", "train this TorchScript module instead"),
               Option::text("input-spec", "LIST",
                            "its inputs: one entry an input, of one sample: float:3x32x32 or int<512>:64, separated by "
                            "commas"),
               Option::path("data", "FILE",
                            "train on these instead: torch.save((inputs, ..., targets), FILE), samples in dimension 0"),
               Option::choice("loss", {"mean", "cross-entropy", "mse"},
                              "of its output: the mean, against classes in the last dimension, or the mean square "
                              "error; default: with --data by the targets' type, else the output itself where it has "
                              "no dimensions, else cross-entropy")});
  add_options(
      set, "The training",
      {Option::integer("steps", "optimizer steps; default in a tuning trial: what the trial needs")
           .from(1)
           .by_default(20),
       Option::toggle("activation-checkpointing",
                      "keep a few activations only and recompute the others in backward; how many: "
                      "activation_checkpointing.number_checkpoints, else the square root of the layers"),
       Option::path("weights", "FILE",
                    "start from these weights: safetensors, or torch.save(model.state_dict(), FILE)"),
       Option::path("checkpoint-dir", "DIR", "save checkpoints there, and go on from the latest one there"),
       Option::integer("checkpoint-every", "after every N optimizer steps; default: after the last one only").from(1),
       Option::toggle("help", "this text").also("-h")});
  return set;
}

// For --help and for suggestions: all that a command line of the program may hold.
OptionSet all_options() {
  OptionSet set = model_option_set();
  const OptionSet world = world_option_set();
  for (const Option& option : world.options()) set.add(option);
  return set;
}

Options read_options(const Values& values, WorldOptions world) {
  Options options;
  static_cast<WorldOptions&>(options) = std::move(world);
  ModelOptions& model = options.model;
  if (const auto name = values.text("model")) {
    const auto at = std::find(kModels.begin(), kModels.end(), *name) - kModels.begin();
    model.kind = static_cast<ModelKind>(at);
  }
  for (const ShapeOption& option : kShape) {
    model.*option.field = values.integer(option.name).value_or(model.*option.field);
  }
  options.torchscript = values.text("torchscript").value_or("");
  options.input_spec = values.text("input-spec").value_or("");
  if (values.given("input-spec")) parse_input_spec(options.input_spec);
  options.data = values.text("data").value_or("");
  options.loss = values.text("loss").value_or("");
  options.steps = values.integer("steps");
  options.activation_checkpointing = values.given("activation-checkpointing");
  options.weights = values.text("weights").value_or("");
  options.checkpoint_dir = values.text("checkpoint-dir").value_or("");
  options.checkpoint_every = values.integer("checkpoint-every").value_or(0);
  options.help = values.given("help");
  return options;
}

void check_torchscript(const Values& values, const Options& options) {
  if (options.torchscript.empty()) {
    for (const char* const alone : {"input-spec", "data", "loss"}) {
      if (values.given(alone))
        throw Error(fmt::format("--{} has a meaning only with --torchscript; leave it out", alone));
    }
    return;
  }
  const auto refuse_second_model = [&](const char* name) {
    if (values.given(name)) throw Error(fmt::format("--torchscript and --{}: choose one model", name));
  };
  refuse_second_model("model");
  for (const ShapeOption& option : kShape) refuse_second_model(option.name);
  if (options.input_spec.empty() && options.data.empty()) {
    throw Error("--torchscript needs --input-spec, like float:3x32x32,int<512>:64, or --data FILE");
  }
  if (!options.input_spec.empty() && !options.data.empty()) {
    throw Error("--input-spec and --data: choose random inputs or your own");
  }
  if (options.loss == "mse" && options.data.empty()) throw Error("--loss mse needs targets: add --data FILE");
}

void check(const Values& values, const Options& options) {
  check_torchscript(values, options);
  const ModelOptions& m = options.model;
  for (const ShapeOption& option : kShape) {
    if (!values.given(option.name) || (option.models & bit(m.kind)) != 0) continue;
    throw Error(fmt::format("--{} has no meaning for --model {}; leave it out", option.name,
                            kModels[static_cast<size_t>(m.kind)]));
  }
  if (m.kind == ModelKind::gpt && m.hidden % m.heads != 0) {
    throw Error(fmt::format("--hidden {} is no multiple of --heads {}", m.hidden, m.heads));
  }
  if (m.kind == ModelKind::resnet && !is_resnet_depth(m.depth)) {
    throw Error(fmt::format("--depth {}: choose 18, 34, 50, 101, 152 or 6n + 2 (8, 14, 20, ...)", m.depth));
  }
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty()) {
    throw Error("--checkpoint-every needs --checkpoint-dir DIR");
  }
  if (options.deepspeed_config.empty()) throw Error("no configuration: add --deepspeed_config FILE");
}

}  // namespace

bool is_resnet_depth(int64_t depth) {
  constexpr std::array<int64_t, 5> kImageNet{18, 34, 50, 101, 152};
  const bool of_image_net = std::find(kImageNet.begin(), kImageNet.end(), depth) != kImageNet.end();
  return of_image_net || (depth >= 8 && depth <= 200 && depth % 6 == 2);
}

Options parse_options(const std::vector<std::string>& args) {
  WorldOptions world = parse_world_options(args);
  const OptionSet set = model_option_set();
  const cli_kit::Split parts = cli_kit::split(set, std::exchange(world.arguments, {}), cli_kit::Grammar::shared);
  const Values values(set, parts.options);
  refuse_leftovers(parts.rest, all_options(), "dsat-trial --help");
  Options options = read_options(values, std::move(world));
  if (!options.help) check(values, options);
  return options;
}

std::string options_help() {
  constexpr unsigned kColumns = 100;
  return fmt::format(
      "usage: dsat-trial [options] --deepspeed_config FILE\n"
      "       dsat-trial export CHECKPOINT OUT.pt|OUT.safetensors\n\n"
      "Trains a model as a DeepSpeed configuration says: real ZeRO stages over CPU processes.\n"
      "dsat-trial --trial LIB.so --help has the options for a trial of your own.\n\n"
      "{}"
      "Exit status: 0 done; 1 out of memory or failed; 2 wrong usage or configuration. docs/trainer.md has the rest.\n",
      cli_kit::help_text(all_options(), kColumns));
}

std::string options_manual(const std::string& shell) {
  const cli_kit::Manual manual{
      "dsat-trial",
      "trains as a DeepSpeed configuration says, on processors",
      "Trains a model on random data, or a trial of your own, as a DeepSpeed configuration says: real ZeRO stages over "
      "processes. dsat-trial --trial LIB.so --help has the options for a trial of your own.\n",
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nout of memory or failed\n.TP\n2\nwrong usage or configuration\n",
      {{"", "[options] --deepspeed_config FILE", "", cli_kit::Operand::none, all_options(), {}}}};
  return shell.empty() ? cli_kit::man_page(manual) : cli_kit::completion(manual, shell);
}

}  // namespace dsat::trainer
