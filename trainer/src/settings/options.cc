#include "settings/options.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/option_values.h"
#include "dsat/error.h"
#include "settings/input_spec.h"

namespace dsat::trainer {
namespace {

ModelKind parse_model(const std::string& text) {
  if (text == "gpt") return ModelKind::gpt;
  if (text == "resnet") return ModelKind::resnet;
  if (text == "mlp") return ModelKind::mlp;
  throw Error("--model " + text + ": unknown model; choose gpt, resnet or mlp");
}

const char* name_of(ModelKind kind) {
  return kind == ModelKind::gpt ? "gpt" : kind == ModelKind::resnet ? "resnet" : "mlp";
}

const std::set<std::string>& shape_options(ModelKind kind) {
  static const std::set<std::string> gpt = {"--layers", "--hidden", "--heads", "--seq", "--vocab"};
  static const std::set<std::string> resnet = {"--depth", "--image"};
  static const std::set<std::string> mlp = {"--layers", "--hidden"};
  return kind == ModelKind::gpt ? gpt : kind == ModelKind::resnet ? resnet : mlp;
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& args) : args_(args) {
    integer("--layers", &ModelOptions::layers, 1, 10000);
    integer("--hidden", &ModelOptions::hidden, 1, 1 << 20);
    integer("--heads", &ModelOptions::heads, 1, 1 << 20);
    integer("--seq", &ModelOptions::seq, 2, 1 << 20);
    integer("--vocab", &ModelOptions::vocab, 2, 1 << 26);
    integer("--depth", &ModelOptions::depth, 8, 200);
    integer("--image", &ModelOptions::image, 8, 4096);
    on_["--checkpoint-dir"] = [this](const std::string& v) {
      if (v.empty()) throw Error("--checkpoint-dir is empty; name a folder");
      options_.checkpoint_dir = v;
    };
    on_["--checkpoint-every"] = [this](const std::string& v) {
      options_.checkpoint_every = parse_integer("--checkpoint-every", v, 1, INT64_MAX);
    };
    on_["--model"] = [this](const std::string& v) {
      options_.model.kind = parse_model(v);
      is_model_given_ = true;
    };
    on_["--torchscript"] = [this](const std::string& v) { options_.torchscript = v; };
    on_["--input-spec"] = [this](const std::string& v) {
      parse_input_spec(v);
      options_.input_spec = v;
    };
    on_["--loss"] = [this](const std::string& v) {
      if (v != "mean" && v != "cross-entropy") throw Error("--loss " + v + ": choose mean or cross-entropy");
      options_.loss = v;
    };
    on_["--steps"] = [this](const std::string& v) { options_.steps = parse_integer("--steps", v, 1, INT64_MAX); };
  }

  Options run() {
    static_cast<WorldOptions&>(options_) = parse_world_options(args_);
    args_ = std::move(options_.arguments);
    for (at_ = 0; at_ < args_.size(); ++at_) take(args_[at_]);
    if (!options_.help) check();
    return options_;
  }

 private:
  void integer(const std::string& name, int64_t ModelOptions::*field, int64_t low, int64_t high) {
    on_[name] = [=](const std::string& v) {
      options_.model.*field = parse_integer(name, v, low, high);
      shapes_given_.insert(name);
    };
  }

  void take(const std::string& arg) {
    if (arg == "--help" || arg == "-h") {
      options_.help = true;
      return;
    }
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const std::string next = at_ + 1 < args_.size() ? args_[at_ + 1] : "";
    if (arg == "--activation-checkpointing") {
      options_.activation_checkpointing = true;
      return;
    }
    const auto found = on_.find(name);
    if (found == on_.end()) throw Error("unknown argument '" + arg + "'; dsat-trial --help lists them");
    if (equals != std::string::npos) return found->second(arg.substr(equals + 1));
    if (at_ + 1 >= args_.size()) throw Error(name + " needs a value");
    ++at_;
    found->second(next);
  }

  void check_torchscript() const {
    const Options& o = options_;
    if (o.torchscript.empty()) {
      const char* const alone = !o.input_spec.empty() ? "--input-spec" : !o.loss.empty() ? "--loss" : nullptr;
      if (alone != nullptr) throw Error(std::string(alone) + " has a meaning only with --torchscript; leave it out");
      return;
    }
    if (is_model_given_ || !shapes_given_.empty()) {
      throw Error("--torchscript and " + (is_model_given_ ? "--model" : *shapes_given_.begin()) + ": choose one model");
    }
    if (o.input_spec.empty()) throw Error("--torchscript needs --input-spec, like float:3x32x32,int<512>:64");
  }

  void check() const {
    check_torchscript();
    const ModelOptions& m = options_.model;
    for (const std::string& name : shapes_given_) {
      if (shape_options(m.kind).count(name) == 0) {
        throw Error(name + " has no meaning for --model " + name_of(m.kind) + "; leave it out");
      }
    }
    if (m.kind == ModelKind::gpt && m.hidden % m.heads != 0) {
      throw Error("--hidden " + std::to_string(m.hidden) + " is no multiple of --heads " + std::to_string(m.heads));
    }
    if (m.kind == ModelKind::resnet && !is_resnet_depth(m.depth)) {
      throw Error("--depth " + std::to_string(m.depth) + ": choose 18, 34, 50, 101, 152 or 6n + 2 (8, 14, 20, ...)");
    }
    if (options_.checkpoint_every > 0 && options_.checkpoint_dir.empty()) {
      throw Error("--checkpoint-every needs --checkpoint-dir DIR");
    }
    if (options_.deepspeed_config.empty()) {
      throw Error("no configuration: add --deepspeed_config FILE");
    }
  }

  std::vector<std::string> args_;
  size_t at_ = 0;
  Options options_;
  std::map<std::string, std::function<void(const std::string&)>> on_;
  std::set<std::string> shapes_given_;
  bool is_model_given_ = false;
};

}  // namespace

bool is_resnet_depth(int64_t depth) {
  static const std::set<int64_t> image_net = {18, 34, 50, 101, 152};
  return image_net.count(depth) > 0 || (depth >= 8 && depth <= 200 && depth % 6 == 2);
}

Options parse_options(const std::vector<std::string>& args) { return Parser(args).run(); }

const char* const kHelp =
    R"(usage: dsat-trial [options] --deepspeed_config FILE

Trains a model on random data as a DeepSpeed configuration says: real ZeRO stages over CPU processes.

  --model gpt|resnet|mlp      what to train (default gpt)
    gpt: --layers 4 --hidden 128 --heads 4 --seq 64 --vocab 512
    resnet: --depth 18 --image 32
    mlp: --layers 4 --hidden 128
  --torchscript FILE          train this TorchScript module instead, on random inputs of
  --input-spec LIST           one entry an input, of one sample: float:3x32x32 or int<512>:64, separated by commas
  --loss mean|cross-entropy   of its output: the mean, or against random classes in the last dimension (default: the
                              output itself where it is one number, else cross-entropy)
  --deepspeed_config FILE     the configuration (or its URL-safe base64); --deepspeed alone is accepted and ignored
  --ranks N                   start N processes here (default 1). Without it RANK, WORLD_SIZE, MASTER_ADDR and
                              MASTER_PORT from the environment place this process in a group started elsewhere
  --device DEVICE             cpu, cuda, or auto: cuda where this build and this machine have it (default)
  --device-memory SIZE        memory of each rank's device, like 512MiB; more than that is an out-of-memory failure
                              (default: DSAT_DEVICE_MEMORY, else unlimited)
  --activation-checkpointing  keep a few activations only and recompute the others in backward; how many:
                              activation_checkpointing.number_checkpoints, else the square root of the layers
  --checkpoint-dir DIR        save checkpoints there, and go on from the latest one there
  --checkpoint-every N        after every N optimizer steps (default: after the last step only)
  --fp16-as-bf16              train in bf16 where the configuration says fp16, which a CPU cannot compute
  --pipeline-stages N         cut the model into N stages that different ranks compute (pipeline.stages of the
                              configuration does the same); N groups of ranks then share the data
  --seed N                    of parameters and data (default 42)
  --steps N                   optimizer steps (default 20; in a tuning trial, what the trial needs)
  -h, --help                  this text

Exit status: 0 done; 1 out of memory or failed; 2 wrong usage or configuration. docs/trainer.md has the rest.
)";

}  // namespace dsat::trainer
