// The services of dsat-trial for a trial: the ranks, the configuration, and a place for its engines, reducers and
// writers.
//
// Threading: one rank, one thread; every rank makes the calls that are marked "collective" in the same order.
// Errors: dsat::Error, one line. Ownership: outlives the trial; shares the objects that it is given.
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

// True for engines of a model-parallel model, which know their rank's place.
template <class E, class = void>
struct KnowsItsUnit : std::false_type {};
template <class E>
struct KnowsItsUnit<E, std::void_t<decltype(ModelParallelUnit(std::declval<E&>().mpu()))>> : std::true_type {};

}  // namespace detail

class TrialContext {
 public:
  // Makes a context outside dsat-trial, for debugging in a program of your own (run() in world.h). `experiment` is an
  // object or the path of a JSON or YAML file. The program makes the trial and calls its methods itself. Borrows
  // `world`.
  static std::unique_ptr<TrialContext> from_config(World& world, const Json& experiment);
  ~TrialContext();
  TrialContext(const TrialContext&) = delete;
  TrialContext& operator=(const TrialContext&) = delete;

  // Engines. Wrap each engine once, in the trial's constructor. Several engines must be only data-parallel or of one
  // model-parallel unit. save() and load() keep the wrapped engines. Returns the engine.
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
  // Sets this rank's place in a model-parallel grid of the trial's own. Default: the place in the engine's pipeline;
  // without one, every rank is data-parallel, reports, and builds loaders. A second call is an Error.
  void set_mpu(const ModelParallelUnit& unit);
  void wrap_mpu(const ModelParallelUnit& unit) { set_mpu(unit); }
  ModelParallelUnit mpu() const;
  // The wrapped engines, and the sizes of the first. An Error before wrap_model_engine().
  const std::vector<std::shared_ptr<ModelEngine>>& models() const;
  int64_t train_micro_batch_size_per_gpu() const;  // samples
  int64_t num_micro_batches_per_slot() const;      // of one optimizer step: gradient_accumulation_steps
  bool use_pipeline_parallel() const;
  // Throws unless the batch sizes (samples) and ranks of the experiment agree with those of this engine; the error
  // names both. dsat-trial checks every wrapped engine before the training begins. In a tuning run the tuner chooses
  // the sizes, so the engine's sizes are only compared with each other and with the ranks.
  void reconcile_ds_config(const ModelEngine& engine) const;
  // Makes train_batch() compute a whole optimizer step with all its micro batches, instead of one micro batch.
  void disable_auto_grad_accumulation();
  // Allows loaders other than DataLoader. The trial must then make sure that they continue at the right batch.
  void disable_dataset_reproducibility_checks();

  // Metrics. Without `name` the reducer returns an object of metrics. Returns the reducer, for its update().
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
  int64_t current_train_epoch() const;  // an Error before the training data's loader is built
  int64_t get_initial_batch() const;    // the first batch of this run: 0, or that of its checkpoint
  bool is_epoch_start() const;          // the current batch is the first of its epoch
  bool is_epoch_end() const;            // the current batch is the last of its epoch
  // Will the training end after this step, with a checkpoint? A rank or SIGTERM may request that.
  bool get_stop_requested() const;
  void set_stop_requested(bool stop_requested = true);

  // Configuration.
  World& world() const;
  // For initialize(): the file of --deepspeed_config, else that of hyperparameters.deepspeed_config, with
  // hyperparameters.overwrite_deepspeed_args written over it. In a tuning run the trial's values win.
  Json get_deepspeed_config() const;
  // A value of the experiment file's `hyperparameters`; a missing one is an Error.
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
  Json get_data_config() const;  // the experiment's `data`, or an empty object
  const Json& get_experiment_config() const;
  std::string get_experiment_id() const;  // in a tuning run the study's folder, else the experiment's name
  std::string get_trial_id() const;       // in a tuning run the trial's id, else "local"
  uint64_t get_trial_seed() const;        // --seed
  bool is_tuning() const;

  // TensorBoard. While logging is on, dsat-trial writes metrics itself; by default it is on outside a tuning run. Each
  // rank's writer has a file of its own, which is made with the first value.
  void set_enable_tensorboard_logging(bool enable);
  bool get_enable_tensorboard_logging() const;
  std::filesystem::path get_tensorboard_path() const;
  EventWriter& get_tensorboard_writer();

  // Writes traces of `active` steps after `wait` and `warmup` steps, `repeat` times (0: to the end), beside the event
  // files; see profiler.h.
  void set_profiler(int64_t wait, int64_t warmup, int64_t active, int64_t repeat = 1,
                    const ProfilerOptions& options = {});

  // For dsat-trial itself.
  struct State;
  explicit TrialContext(std::unique_ptr<State> state);
  State& state() { return *state_; }

 private:
  void add_engine(std::shared_ptr<ModelEngine> engine, const std::optional<ModelParallelUnit>& unit);

  std::unique_ptr<State> state_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_CONTEXT_H_
