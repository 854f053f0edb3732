// Reads the sections about the update: optimizer, fp16, offload_optimizer.
// Defaults are DeepSpeed's; keys of these sections that have no effect are named in a warning.
#include "settings/update_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/config_reader.h"
#include "settings/schedule_settings.h"

namespace dsat::trainer {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

// Keys of the object `section` that are set and not `known`.
void warn_of_unknown(const Json& config, const std::string& section, const std::vector<const char*>& known,
                     std::vector<std::string>& warnings) {
  const Json* object = given(config, section);
  if (object == nullptr || !object->is_object()) return;
  for (const auto& [key, value] : object->items()) {
    const bool is_off = value.is_null() || value == Json(false);
    const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
    if (!is_off && !is_known) warnings.push_back(fmt::format("{}.{}: dsat-trial does not have it", section, key));
  }
}

void read_betas(const Json& config, OptimizerSettings& s) {
  const Json* betas = given(config, "optimizer.params.betas");
  if (betas == nullptr) return;
  const bool pair = betas->is_array() && betas->size() == 2 && (*betas)[0].is_number() && (*betas)[1].is_number();
  if (pair) {
    s.beta1 = (*betas)[0].get<double>();
    s.beta2 = (*betas)[1].get<double>();
  }
  const auto valid = [](double beta) { return beta >= 0 && beta < 1; };
  if (!pair || !valid(s.beta1) || !valid(s.beta2)) {
    throw Error(fmt::format("optimizer.params.betas is {}; expected two numbers from 0 to below 1", betas->dump()));
  }
}

void read_lamb(const Json& config, OptimizerSettings& s) {
  s.kind = OptimizerSettings::Kind::lamb;
  s.eps_inside_sqrt = read_bool(config, "optimizer.params.eps_inside_sqrt", false);
  s.min_coeff = read_number(config, "optimizer.params.min_coeff", s.min_coeff, 0, 1e9);
  s.max_coeff = read_number(config, "optimizer.params.max_coeff", s.max_coeff, 0, 1e9);
  if (s.min_coeff > s.max_coeff) throw Error("optimizer.params.min_coeff is above optimizer.params.max_coeff");
}

void read_sgd(const Json& config, OptimizerSettings& s) {
  s.kind = OptimizerSettings::Kind::sgd;
  s.momentum = read_number(config, "optimizer.params.momentum", 0, 0, 1);
  s.dampening = read_number(config, "optimizer.params.dampening", 0, 0, 1);
  s.nesterov = read_bool(config, "optimizer.params.nesterov", false);
  if (s.nesterov && s.momentum == 0) throw Error("optimizer.params.nesterov needs a momentum above 0");
}

}  // namespace

OptimizerSettings read_optimizer(const Json& config) {
  OptimizerSettings s;
  const std::string type = read_string(config, "optimizer.type", "Adam");
  const std::string name = lower(type);
  if (!is_one_of(name, {"adam", "adamw", "sgd", "lamb"})) {
    throw Error(fmt::format("optimizer.type is \"{}\"; dsat-trial has Adam, AdamW, SGD and Lamb", type));
  }
  s.lr = read_number(config, "optimizer.params.lr", s.lr, 0, 1e6);
  s.eps = read_number(config, "optimizer.params.eps", s.eps, 0, 1);
  s.bias_correction = read_bool(config, "optimizer.params.bias_correction", true);
  // DeepSpeed's Adam is AdamW unless adam_w_mode is false.
  s.decoupled_weight_decay = name == "adamw" || read_bool(config, "optimizer.params.adam_w_mode", true);
  // torch_adam chooses PyTorch's AdamW, of which this is the default.
  const bool is_torchs = is_one_of(name, {"adam", "adamw"}) && read_bool(config, "optimizer.params.torch_adam", false);
  if (is_torchs && s.decoupled_weight_decay) s.weight_decay = 0.01;
  s.weight_decay = read_number(config, "optimizer.params.weight_decay", s.weight_decay, 0, 1e6);
  read_betas(config, s);
  if (name == "sgd") read_sgd(config, s);
  if (name == "lamb") read_lamb(config, s);
  return s;
}

LossScaleSettings read_loss_scale(const Json& config) {
  LossScaleSettings s;
  s.enabled = is_enabled(config, "fp16");
  if (!s.enabled) return s;
  s.fixed = read_number(config, "fp16.loss_scale", s.fixed, 0, 1e30);
  s.initial_power = read_integer(config, "fp16.initial_scale_power", s.initial_power, 0, 127);
  s.window = read_integer(config, "fp16.loss_scale_window", s.window, 1, INT64_C(1) << 50);
  s.hysteresis = read_integer(config, "fp16.hysteresis", s.hysteresis, 1, INT64_C(1) << 50);
  s.consecutive_hysteresis = read_bool(config, "fp16.consecutive_hysteresis", false);
  s.min_scale = read_number(config, "fp16.min_loss_scale", s.min_scale, 1e-30, 1e30);
  return s;
}

bool offloads_optimizer(const Json& config) {
  const std::string section = "zero_optimization.offload_optimizer";
  const std::string device = read_string(config, section + ".device", "none");
  if (device == "nvme") throw Error(fmt::format("{}.device is \"nvme\": dsat-trial offloads to \"cpu\" only", section));
  const double ratio = read_number(config, section + ".ratio", 1, 0, 1);
  if (device == "cpu" && ratio != 1)
    throw Error(fmt::format("{}.ratio: dsat-trial offloads all or nothing; set it to 1", section));
  return device == "cpu" || is_enabled(config, "zero_optimization.cpu_offload");
}

void refuse_fp16(const Json& config) {
  if (!is_enabled(config, "fp16")) return;
  throw Error(
      "fp16.enabled: half precision cannot be computed on a CPU; use bf16.enabled instead, or add --fp16-as-bf16 to "
      "run bf16 in its place");
}

void warn_of_update_settings(const Json& config, std::vector<std::string>& warnings) {
  if (!read_string(config, "scheduler.type", "").empty()) {
    warn_of_unknown(config, "scheduler.params", schedule_keys(config), warnings);
  } else if (given(config, "scheduler") != nullptr) {
    warnings.push_back("scheduler has no type: the learning rate is constant");
  }
  // fused and foreach say which kernel runs.
  warn_of_unknown(config, "optimizer.params",
                  {"lr", "eps", "betas", "weight_decay", "bias_correction", "momentum", "nesterov", "dampening",
                   "adam_w_mode", "torch_adam", "fused", "foreach", "eps_inside_sqrt", "min_coeff", "max_coeff"},
                  warnings);
  // auto_cast is about the model's inputs, which are cast here anyway.
  warn_of_unknown(config, "fp16",
                  {"enabled", "auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
                   "consecutive_hysteresis", "min_loss_scale"},
                  warnings);
  // Host memory here is ordinary memory: how it is pinned and buffered changes nothing.
  warn_of_unknown(config, "zero_optimization.offload_optimizer",
                  {"device", "ratio", "pin_memory", "buffer_count", "fast_init", "nvme_path", "pipeline_read",
                   "pipeline_write", "pipeline"},
                  warnings);
}

}  // namespace dsat::trainer
