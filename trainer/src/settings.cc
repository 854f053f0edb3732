#include "settings.h"

#include <filesystem>
#include <optional>

#include "config_keys.h"
#include "config_reader.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::trainer {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 50;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
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
    throw Error("optimizer.params.betas is " + betas->dump() + "; expected two numbers from 0 to below 1");
  }
}

OptimizerSettings read_optimizer(const Json& config) {
  OptimizerSettings s;
  const std::string type = read_string(config, "optimizer.type", "Adam");
  const std::string name = lower(type);
  if (name == "sgd") {
    s.kind = OptimizerSettings::Kind::sgd;
  } else if (name != "adam" && name != "adamw") {
    throw Error("optimizer.type is \"" + type + "\"; dsat-trial has Adam, AdamW and SGD");
  }
  s.lr = read_number(config, "optimizer.params.lr", s.lr, 0, 1e6);
  s.eps = read_number(config, "optimizer.params.eps", s.eps, 0, 1);
  s.weight_decay = read_number(config, "optimizer.params.weight_decay", s.weight_decay, 0, 1e6);
  s.bias_correction = read_bool(config, "optimizer.params.bias_correction", true);
  // DeepSpeed's Adam is AdamW unless it is told otherwise.
  s.decoupled_weight_decay = name == "adamw" || read_bool(config, "optimizer.params.adam_w_mode", true);
  read_betas(config, s);
  if (s.kind == OptimizerSettings::Kind::sgd) {
    s.momentum = read_number(config, "optimizer.params.momentum", 0, 0, 1);
    s.dampening = read_number(config, "optimizer.params.dampening", 0, 0, 1);
    s.nesterov = read_bool(config, "optimizer.params.nesterov", false);
    if (s.nesterov && s.momentum == 0) throw Error("optimizer.params.nesterov needs a momentum above 0");
  }
  return s;
}

// Parameters of optimizers that change nothing here (which kernel runs), or that read_optimizer reads.
void warn_of_optimizer_params(const Json& config, std::vector<std::string>& warnings) {
  const Json* params = given(config, "optimizer.params");
  if (params == nullptr || !params->is_object()) return;
  for (const auto& [key, value] : params->items()) {
    static const char* const known[] = {"lr",       "eps",      "betas",     "weight_decay", "bias_correction",
                                        "momentum", "nesterov", "dampening", "adam_w_mode",  "torch_adam",
                                        "fused",    "foreach"};
    bool is_known = false;
    for (const char* name : known) is_known = is_known || key == name;
    const bool is_off = value.is_null() || value == Json(false);
    if (!is_known && !is_off) warnings.push_back("optimizer.params." + key + ": dsat-trial does not have it");
  }
}

TuningSettings read_tuning(const Json& config) {
  TuningSettings t;
  t.enabled = is_enabled(config, "autotuning");
  if (!t.enabled) return t;
  t.model_info = read_bool(config, "autotuning.model_info.profile", false);
  t.model_info_path = read_string(config, "autotuning.model_info_path", t.model_info_path);
  t.metric_path = read_string(config, "autotuning.metric_path", t.metric_path);
  t.start_profile_step = read_integer(config, "autotuning.start_profile_step", t.start_profile_step, 0, INT32_MAX);
  t.end_profile_step = read_integer(config, "autotuning.end_profile_step", t.end_profile_step, 0, INT32_MAX);
  if (t.end_profile_step < t.start_profile_step) {
    throw Error("autotuning.end_profile_step " + std::to_string(t.end_profile_step) + " is before start_profile_step " +
                std::to_string(t.start_profile_step));
  }
  return t;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-' || c == '+') return 62;
  if (c == '_' || c == '/') return 63;
  return -1;
}

// nullopt: not base64.
std::optional<std::string> decode_base64(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < text.size() && text[i] != '='; ++i) {
    const int digit = base64_digit(text[i]);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  return bytes;
}

}  // namespace

SettingsResult read_settings(const Json& config, int64_t world_size) {
  if (!config.is_object()) throw Error("the configuration is no JSON object; expected {...}");
  refuse_unsupported(config);
  if (const auto broken = config::broken_rule(config)) throw Error(*broken);
  SettingsResult result;
  Settings& s = result.settings;
  const config::GivenBatchSizes sizes = config::read_batch_sizes(config);
  config::check_batch_sizes(sizes, world_size);
  s.batch = config::complete_batch_sizes(sizes, world_size);
  s.stage = config::zero_stage(config);
  s.reduce_bucket = read_integer(config, "zero_optimization.reduce_bucket_size", s.reduce_bucket, 1, kMaxElements);
  s.allgather_bucket =
      read_integer(config, "zero_optimization.allgather_bucket_size", s.allgather_bucket, 1, kMaxElements);
  s.overlap_comm = read_bool(config, "zero_optimization.overlap_comm", s.stage == 3);  // as DeepSpeed
  s.reduce_scatter = read_bool(config, "zero_optimization.reduce_scatter", true);
  s.bf16 = is_enabled(config, "bf16") || is_enabled(config, "bfloat16");
  s.gradient_clipping = read_number(config, "gradient_clipping", 0, 0, 1e9);
  s.number_checkpoints = read_integer(config, "activation_checkpointing.number_checkpoints", 0, 1, INT32_MAX);
  s.optimizer = read_optimizer(config);
  s.tuning = read_tuning(config);
  result.warnings = warn_of_ignored(config);
  warn_of_optimizer_params(config, result.warnings);
  return result;
}

Json load_configuration(const std::string& argument) {
  std::error_code ignored;
  if (!std::filesystem::exists(argument, ignored)) {
    const std::optional<std::string> decoded = decode_base64(argument);
    if (decoded && !decoded->empty() && decoded->front() == '{') return config::parse(*decoded, "--deepspeed_config");
  }
  return config::load_file(argument);
}

}  // namespace dsat::trainer
