// The Trial API: a user's model, data and loop, trained by dsat-trial.
//
//   class MyTrial : public dsat::trainer::Trial { ... };
//   DSAT_TRIAL(MyTrial)
//
// is a shared library that needs only the headers; `dsat-trial --trial libmytrial.so` has the rest. docs/trial-api.md
// describes the API.
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
  // The constructor of a trial takes the context, builds its engines and wraps them. Borrows the context.
  explicit Trial(TrialContext& context) : context_(context) {}
  virtual ~Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Called on ranks whose unit has should_build_data_loader. The batch size of a DataLoader is the engine's micro
  // batch.
  virtual std::shared_ptr<Loader> build_training_data_loader() = 0;
  virtual std::shared_ptr<Loader> build_validation_data_loader() = 0;

  // Trains one micro batch: data.next(), forward, backward, step. It is called gradient_accumulation_steps times for an
  // optimizer step. After disable_auto_grad_accumulation(), which a pipeline needs, it is called once for a step and
  // trains all its micro batches. `batch`: the optimizer step, counted from 0 over the whole training. Metrics of ranks
  // that do not report are ignored.
  virtual Metrics train_batch(BatchIterator& data, int64_t epoch, int64_t batch) = 0;
  // Evaluates one micro batch without gradients; with a pipeline the gradient_accumulation_steps micro batches of its
  // eval_batch(). `batch`: counted from 0 in this validation.
  virtual Metrics evaluate_batch(BatchIterator& data, int64_t batch) = 0;

  virtual Callbacks build_callbacks() { return {}; }

  // Write and read the folder of a checkpoint; collective. By default every rank saves and loads its shard of each
  // wrapped engine. An override that keeps more must call these.
  virtual void save(const std::string& path);
  virtual void load(const std::string& path);

 protected:
  TrialContext& context_;
};

// The versions that a trial's library and dsat-trial must share.
#define DSAT_TRAINER_VERSION "1.0.0"
struct TrialVersions {
  const char* dsat = DSAT_TRAINER_VERSION;
  const char* libtorch = TORCH_VERSION;
};

// The export of DSAT_TRIAL. The versions stay first, because they are checked before the other members are read.
struct TrialEntry {
  TrialVersions versions;
  const char* name;
  std::unique_ptr<Trial> (*make)(TrialContext& context);
};
inline constexpr const char* kTrialEntry = "dsat_trial_entry";

}  // namespace dsat::trainer

// Use it once in a library, outside any namespace.
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
