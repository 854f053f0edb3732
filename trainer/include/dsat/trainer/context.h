// What dsat-trial gives a trial: the ranks, the configuration, and a place for its engines, reducers and writers.
//
// Threading: one rank, one thread; every rank makes the same calls in the same order where the text says "collective".
// Errors: dsat::Error, one line. Ownership: lives longer than the trial; shares what it is given.
#ifndef DSAT_TRAINER_CONTEXT_H_
#define DSAT_TRAINER_CONTEXT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsat/trainer/data_loader.h"
#include "dsat/trainer/engine.h"
#include "dsat/trainer/event_writer.h"
#include "dsat/trainer/metric_reducer.h"
#include "dsat/trainer/mpu.h"
#include "dsat/trainer/profiler.h"
#include "dsat/trainer/world.h"

namespace dsat::trainer {

namespace detail {

// Engines of a model-parallel model know their rank's place.
template <class E, class = void>
struct KnowsItsUnit : std::false_type {};
template <class E>
struct KnowsItsUnit<E, std::void_t<decltype(ModelParallelUnit(std::declval<E&>().mpu()))>> : std::true_type {};

}  // namespace detail

class TrialContext {
 public:
  // Outside dsat-trial, for debugging: in a program of one's own (run() in world.h), with the experiment as an object
  // or the path of a JSON or YAML file. The caller then makes the trial and calls its methods himself. Borrows `world`.
  static std::unique_ptr<TrialContext> from_config(World& world, const Json& experiment);
  ~TrialContext();
  TrialContext(const TrialContext&) = delete;
  TrialContext& operator=(const TrialContext&) = delete;

  // Engines. Each is wrapped once, in the trial's constructor; several, if they are data-parallel only or of one
  // model-parallel unit. What is wrapped is what save() and load() keep. Gives the engine back.
  template <class E>
  std::shared_ptr<E> wrap_model_engine(std::shared_ptr<E> engine) {
    std::optional<ModelParallelUnit> unit;
    if constexpr (detail::KnowsItsUnit<E>::value) {
      if (engine) unit = engine->mpu();
    }
    add_engine(engine, unit);
    return engine;
  }
  template <class E>
  std::shared_ptr<E> wrap_model_engine(std::unique_ptr<E> engine) {
    return wrap_model_engine(std::shared_ptr<E>(std::move(engine)));
  }
  // Where this rank stands in a model-parallel grid of the trial's own. Default: that of the engine, for a pipeline;
  // else every rank is data-parallel, reports, and builds loaders.
  // Called once; a second call is an Error.
  void set_mpu(const ModelParallelUnit& unit);
  void wrap_mpu(const ModelParallelUnit& unit) { set_mpu(unit); }
  ModelParallelUnit mpu() const;
  // The wrapped engines, and the sizes of the first one; before wrap_model_engine() they are an Error.
  const std::vector<std::shared_ptr<ModelEngine>>& models() const;
  int64_t train_micro_batch_size_per_gpu() const;  // samples
  int64_t num_micro_batches_per_slot() const;      // of one optimizer step: gradient_accumulation_steps
  bool use_pipeline_parallel() const;
  // Throws unless batch sizes (samples) and ranks of the experiment and of this engine agree; the error names both.
  // Done for every wrapped engine before the training begins. In a tuning run the tuner chooses the sizes, so that only
  // the engine's own are compared with each other and with the ranks.
  void reconcile_ds_config(const ModelEngine& engine) const;
  // train_batch() computes a whole optimizer step, all micro batches of it, instead of one micro batch.
  void disable_auto_grad_accumulation();
  // Loaders may be other than DataLoader; that they go on at the right batch is then the trial's matter.
  void disable_dataset_reproducibility_checks();

  // Metrics. `name`: none: the reducer gives an object of metrics. Returns the reducer, for its update().
  std::shared_ptr<MetricReducer> wrap_reducer(std::shared_ptr<MetricReducer> reducer,
                                              std::optional<std::string> name = std::nullopt, bool for_training = true,
                                              bool for_validation = true);
  std::shared_ptr<MetricReducer> wrap_reducer(ReduceFunction function, std::optional<std::string> name = std::nullopt,
                                              bool for_training = true, bool for_validation = true);

  // Devices.
  at::Device device() const;
  at::Tensor to_device(const at::Tensor& tensor) const;
  Tensors to_device(const Tensors& tensors) const;
  std::map<std::string, at::Tensor> to_device(const std::map<std::string, at::Tensor>& tensors) const;

  // Progress. Batches are optimizer steps over the whole training, counted from 0.
  int64_t current_train_batch() const;
  int64_t current_train_epoch() const;  // known once the training data's loader is built; before, an Error
  int64_t get_initial_batch() const;    // the first one of this run: 0, or where its checkpoint stood
  bool is_epoch_start() const;          // the current batch is the first of its epoch
  bool is_epoch_end() const;            // the last
  // Whether the training is to end after this step, with a checkpoint: asked for by a rank, or by SIGTERM.
  bool get_stop_requested() const;
  void set_stop_requested(bool stop_requested = true);

  // Configuration.
  World& world() const;
  // For initialize(): what --deepspeed_config names, else the file hyperparameters.deepspeed_config, with
  // hyperparameters.overwrite_deepspeed_args written over it; in a tuning run the trial's own values win.
  Json get_deepspeed_config() const;
  // An experiment file's `hyperparameters`; a missing one is an Error.
  Json get_hparam(const std::string& name) const;
  template <class T>
  T get_hparam(const std::string& name) const {
    try {
      return get_hparam(name).get<T>();
    } catch (const Json::exception&) {
      throw Error("hyperparameter '" + name + "' is " + get_hparam(name).dump() +
                  ": it has another type than the trial wants");
    }
  }
  const Json& get_hparams() const;
  Json get_data_config() const;  // its `data`; an empty object if it has none
  const Json& get_experiment_config() const;
  std::string get_experiment_id() const;  // in a tuning run the study's folder, else the experiment's name
  std::string get_trial_id() const;       // in a tuning run that of the trial, else "local"
  uint64_t get_trial_seed() const;        // --seed
  bool is_tuning() const;

  // TensorBoard. While logging is on dsat-trial writes metrics there itself; default: outside a tuning run. Each rank's
  // writer has a file of its own; no file without values.
  void set_enable_tensorboard_logging(bool enable);
  bool get_enable_tensorboard_logging() const;
  std::filesystem::path get_tensorboard_path() const;
  EventWriter& get_tensorboard_writer();

  // Traces of `active` steps after `wait` and `warmup` ones, `repeat` times (0: to the end), beside the event files;
  // see profiler.h.
  void set_profiler(int64_t wait, int64_t warmup, int64_t active, int64_t repeat = 1,
                    const ProfilerOptions& options = {});

  // dsat-trial's own.
  struct State;
  explicit TrialContext(std::unique_ptr<State> state);
  State& state() { return *state_; }

 private:
  void add_engine(std::shared_ptr<ModelEngine> engine, const std::optional<ModelParallelUnit>& unit);

  std::unique_ptr<State> state_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_CONTEXT_H_
