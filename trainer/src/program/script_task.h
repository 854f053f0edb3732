// What a TorchScript module is trained on: micro batches, random ones or a user's own, and the loss.
//
// A micro batch is a function of its number on this data-parallel rank, so a resumed run goes on with the next one.
// Threading: one rank, one thread. Ownership: values. Errors: dsat::Error, one line that names the option.
#ifndef DSAT_TRAINER_PROGRAM_SCRIPT_TASK_H_
#define DSAT_TRAINER_PROGRAM_SCRIPT_TASK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "dsat/trainer/data_loader.h"
#include "dsat/trainer/world.h"
#include "settings/input_spec.h"
#include "settings/options.h"
#include "settings/settings.h"

namespace dsat::trainer {

struct ScriptBatch {
  Tensors inputs;
  at::Tensor target;  // for ScriptTask::loss()
};

class ScriptTask {
 public:
  // Reads --data.
  ScriptTask(const Options& options, const Settings& settings, const World& world);

  size_t num_inputs() const;
  // The micro batch `number` of the data-parallel rank `rank` of `count`, from 0.
  ScriptBatch batch(int64_t number, int64_t rank, int64_t count);
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const;

 private:
  ScriptBatch random_batch(int64_t number) const;
  RandomStream stream(int64_t number) const { return RandomStream(seed_, ~static_cast<uint64_t>(number)); }
  at::Tensor random_input(const RandomStream& stream, const InputSpec& spec) const;
  at::Tensor random_classes(const at::Tensor& output, const at::Tensor& number) const;

  std::vector<InputSpec> specs_;
  std::string loss_;
  int64_t micro_batch_;
  at::ScalarType dtype_;
  at::Device device_;
  uint64_t seed_;
  size_t tensors_ = 0;                  // of --data
  std::unique_ptr<DataLoader> loader_;  // of --data; none: random batches
  BatchIterator iterator_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PROGRAM_SCRIPT_TASK_H_
