// Who holds the parameters: every rank all of them (stages 0 to 2), or each rank its shard, with one layer at a time
// gathered whole (stage 3).
//
// Memory: replicated P elements; partitioned P/N, and during a step one arena of the largest layer's size.
// Threading: one rank, one thread; gather, release and publish are collective.
#ifndef DSAT_TRAINER_PARAMETERS_H_
#define DSAT_TRAINER_PARAMETERS_H_

#include <memory>
#include <vector>

#include "model.h"
#include "zero_context.h"

namespace dsat::trainer {

class Parameters {
 public:
  virtual ~Parameters() = default;

  // Leaf tensors, in the order of the layer's specs. Partitioned ones have data only while their layer is gathered.
  const std::vector<Tensors>& layers() const { return layers_; }
  // This rank's own elements, which its optimizer updates.
  virtual at::Tensor shard() const = 0;
  virtual bool partitioned() const = 0;

  virtual void begin_step() {}
  virtual void gather(size_t /*layer*/) {}
  virtual void release(size_t /*layer*/) {}
  virtual void end_step() {}
  // After the update: every rank gets what the others have updated.
  virtual void publish() {}

 protected:
  std::vector<Tensors> layers_;
};

// For context.settings.stage, holding their initial values.
std::unique_ptr<Parameters> make_parameters(const ZeroContext& context);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PARAMETERS_H_
