// The answer of `dsat-host estimate`: model states by the formulas of ZeRO, activations by the formula of a
// transformer, and the largest micro batch that fits with both.
#include "dsat/cost/estimate.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace dsat::cost {
namespace {

void check(const EstimateRequest& request) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (!positive(request.num_params)) throw Error("--num-params must be above 0, e.g. 7.5e9");
  if (request.world_size < 1) throw Error("--world-size must be at least 1");
  if (request.trainable_params) {
    const double trainable = *request.trainable_params;
    if (!std::isfinite(trainable) || trainable < 0 || trainable > request.num_params) {
      throw Error("--trainable-params must lie between 0 and --num-params");
    }
  }
  if (request.device_memory_bytes && !positive(*request.device_memory_bytes)) {
    throw Error("--device-memory must be above 0, e.g. 80GB");
  }
}

Setup setup_of(const EstimateRequest& request, int stage) {
  Setup setup;
  setup.stage = stage;
  setup.precision = setup.accumulation_dtype = request.precision;
  setup.optimizer = request.optimizer;
  if (request.offload_optimizer && stage >= 1) setup.optimizer_device = Device::host;
  if (request.offload_param && stage == 3) setup.parameter_device = Device::host;
  setup.data_parallel_size = request.world_size;
  setup.overlap_comm = stage == 3;
  return setup;
}

template <class T>
struct Choice {
  const char* name;
  T value;
};

template <class T, size_t N>
T parse_choice(const char* option, std::string_view text, const Choice<T> (&choices)[N]) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (text == choice.name) return choice.value;
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
  }
  throw Error(std::string(option) + " '" + std::string(text) + "' is not known; choose one of " + names);
}

}  // namespace

Json estimate(const EstimateRequest& request) {
  check(request);
  const ModelSize size{request.num_params, request.trainable_params.value_or(request.num_params), 0};
  Json activation = nullptr;
  if (request.transformer) {
    activation = transformer_activation_bytes_per_sample(*request.transformer, request.precision);
  }
  Json stages = Json::array();
  for (int stage = 0; stage <= 3; ++stage) {
    const Setup setup = setup_of(request, stage);
    const double states = model_state_bytes(size, setup);
    Json max_micro_batch = nullptr;
    if (request.device_memory_bytes && request.transformer) {
      const double room = *request.device_memory_bytes - states - buffer_bytes(size, setup);
      max_micro_batch = static_cast<int64_t>(std::max(0.0, std::floor(room / activation.get<double>())));
    }
    stages.push_back({{"stage", stage},
                      {"model_state_bytes", states},
                      {"activation_bytes_per_sample", activation},
                      {"max_micro_batch", max_micro_batch}});
  }
  return Json{{"stages", stages}};
}

Precision parse_precision(std::string_view text) {
  static constexpr Choice<Precision> kChoices[] = {
      {"fp32", Precision::fp32}, {"fp16", Precision::fp16}, {"bf16", Precision::bf16}};
  return parse_choice("--precision", text, kChoices);
}

Optimizer parse_optimizer(std::string_view text) {
  static constexpr Choice<Optimizer> kChoices[] = {{"adam", Optimizer::adam},
                                                   {"adamw", Optimizer::adam},
                                                   {"sgd", Optimizer::sgd},
                                                   {"sgd-momentum", Optimizer::sgd_momentum}};
  return parse_choice("--optimizer", text, kChoices);
}

Checkpointing parse_checkpointing(std::string_view text) {
  static constexpr Choice<Checkpointing> kChoices[] = {
      {"none", Checkpointing::none}, {"selective", Checkpointing::selective}, {"full", Checkpointing::full}};
  return parse_choice("--checkpointing", text, kChoices);
}

}  // namespace dsat::cost
