// The Trial API: a user's model, data and loop, trained by dsat-trial.
//
//   class MyTrial : public dsat::trainer::Trial { ... };
//   DSAT_TRIAL(MyTrial)
//
// is a shared library, built from headers only; `dsat-trial --trial libmytrial.so` has the rest. docs/trial-api.md has
// the whole of it.
// Threading: one rank, one thread; every rank runs the same trial. Ownership: dsat-trial owns the trial, which borrows
// its context. Errors: an exception ends the training on all ranks.
#ifndef DSAT_TRAINER_TRIAL_H_
#define DSAT_TRAINER_TRIAL_H_

#include <torch/version.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "dsat/trainer/callback.h"
#include "dsat/trainer/context.h"
#include "dsat/trainer/data_loader.h"
#include "dsat/trainer/metrics.h"

namespace dsat::trainer {

class Trial {
 public:
  // A trial's constructor takes the context, builds its engines and wraps them. Borrows the context.
  explicit Trial(TrialContext& context) : context_(context) {}
  virtual ~Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // On ranks whose unit says should_build_data_loader. A DataLoader's batch size is the engine's micro batch.
  virtual std::shared_ptr<Loader> build_training_data_loader() = 0;
  virtual std::shared_ptr<Loader> build_validation_data_loader() = 0;

  // One micro batch: data.next(), forward, backward, step; called gradient_accumulation_steps times for an optimizer
  // step. After disable_auto_grad_accumulation(), which a pipeline needs, once for a step, all of whose micro batches
  // it trains. `batch`: the optimizer step, counted from 0 over the whole training. Metrics of ranks that do not report
  // are not used.
  virtual Metrics train_batch(BatchIterator& data, int64_t epoch, int64_t batch) = 0;
  // One micro batch of a validation, without gradients; of a pipeline the gradient_accumulation_steps ones that its
  // eval_batch() takes. `batch`: counted from 0 in this validation.
  virtual Metrics evaluate_batch(BatchIterator& data, int64_t batch) = 0;

  virtual Callbacks build_callbacks() { return {}; }

  // To and from a checkpoint's folder; collective. By default every rank saves and loads its shard of each wrapped
  // engine. Who overrides them keeps more, and calls these.
  virtual void save(const std::string& path);
  virtual void load(const std::string& path);

 protected:
  TrialContext& context_;
};

// What a trial's library and dsat-trial must have in common.
#define DSAT_TRAINER_VERSION "0.1.0"
struct TrialVersions {
  const char* dsat = DSAT_TRAINER_VERSION;
  const char* libtorch = TORCH_VERSION;
};

// What DSAT_TRIAL exports. The versions stay first: they are read before anything else is believed.
struct TrialEntry {
  TrialVersions versions;
  const char* name;
  std::unique_ptr<Trial> (*make)(TrialContext& context);
};
inline constexpr const char* kTrialEntry = "dsat_trial_entry";

}  // namespace dsat::trainer

// Once in a library, outside any namespace.
#define DSAT_TRIAL(T)                                                                                                 \
  static_assert(std::is_base_of_v<dsat::trainer::Trial, T>, #T " must derive from dsat::trainer::Trial");             \
  static_assert(!std::is_abstract_v<T>, #T                                                                            \
                " lacks build_training_data_loader, build_validation_data_loader, "                                   \
                "train_batch or evaluate_batch, or one has another signature");                                       \
  static_assert(std::is_constructible_v<T, dsat::trainer::TrialContext&>, #T " needs a constructor (TrialContext&)"); \
  extern "C" __attribute__((visibility("default"))) const dsat::trainer::TrialEntry* dsat_trial_entry() {             \
    static const dsat::trainer::TrialEntry entry{                                                                     \
        {}, #T, [](dsat::trainer::TrialContext& context) -> std::unique_ptr<dsat::trainer::Trial> {                   \
          return std::make_unique<T>(context);                                                                        \
        }};                                                                                                           \
    return &entry;                                                                                                    \
  }

#endif  // DSAT_TRAINER_TRIAL_H_
