// A profiler in C++: one trial measures the model's size, and the cost model estimates the rest.
#include <dsat/config/json.h>
#include <dsat/cost/memory.h>
#include <dsat/searcher.h>

class QuickProfile : public dsat::Profiler<QuickProfile> {
 public:
  static dsat::Descriptor descriptor() {
    return {"example.quick-profile", "quick-profile", "1.0.0", "the model's size from one forward pass", {}};
  }
  QuickProfile(dsat::Host host, const dsat::Options&) : Profiler(host) {}

  void start(const dsat::Study& study) {
    study_ = study;
    dsat::TrialRequest request;
    request.overrides = {{"train_micro_batch_size_per_gpu", 1}, {"autotuning", {{"model_info", {{"profile", true}}}}}};
    request.note = "the model's size";
    if (!create_trial(request)) finish("no trial is left for the profile");
  }

  void on_result(const dsat::Result& result) {
    const auto params = result.metric("num_params");
    if (!params) return;
    inputs_.size.num_params = *params;
    inputs_.size.trainable_num_params = result.metric("trainable_num_params").value_or(*params);
    inputs_.activation_bytes_at_micro_batch_1 = result.metric("activation_mem_per_gpu");
    inputs_.device_memory_bytes = result.metric("device_memory");
    if (study_.device_memory_bytes) inputs_.device_memory_bytes = static_cast<double>(*study_.device_memory_bytes);
  }

  void on_trial_exited(const dsat::Exit& exit) {
    if (inputs_.size.num_params == 0) return finish("the trial reported no model size: " + std::string(exit.reason()));
    const dsat::cost::MemoryFit fit = dsat::cost::fit_memory(inputs_, {});
    dsat::Json profile{{"schema", 1},
                       {"num_params", inputs_.size.num_params},
                       {"trainable_num_params", inputs_.size.trainable_num_params},
                       {"device_memory_bytes", nullptr},
                       {"world_size", study_.limits.slots_per_trial},
                       {"activation_bytes_per_sample", to_json(activation_bytes_per_sample(fit))},
                       {"fixed_bytes", to_json(fixed_bytes(fit))},
                       {"stages", dsat::Json::array()},
                       {"trials", {exit.trial()}}};
    if (inputs_.device_memory_bytes) profile["device_memory_bytes"] = *inputs_.device_memory_bytes;
    for (const int stage : study_.zero_stages) profile["stages"].push_back(stage_profile(fit, stage));
    set_profile(profile);
    finish("profiled with one trial");
  }

 private:
  dsat::Json stage_profile(const dsat::cost::MemoryFit& fit, int stage) const {
    dsat::Json config = study_.base_config;
    dsat::config::set(config, "zero_optimization.stage", stage);
    const auto setup = dsat::cost::setup_from_config(config, study_.limits.data_parallel_size);
    const double states = dsat::cost::model_state_bytes(inputs_.size, setup);
    return {{"stage", stage},
            {"model_state_bytes", dsat::cost::to_json({states, states, states})},
            {"max_micro_batch", dsat::cost::to_json(dsat::cost::micro_batch_ceiling(fit, setup))}};
  }

  dsat::Study study_;
  dsat::cost::Inputs inputs_;
};

DSAT_PLUGIN(QuickProfile);
