// Notices parameters that something else than the engine has changed.
//
// The engine's own updates go through its flat arrays, and autograd refuses a change of a leaf that needs a gradient
// except without a graph. So a tensor whose version has moved on was edited by hand, and one that lies in other memory
// was given another tensor's (set_data, Module::to). With a shard or a master copy somewhere else such a change would
// be lost at some stages and kept at others. Ownership: borrows the layout and the leaves. Threading: the compute
// thread. Errors: check().
#ifndef DSAT_TRAINER_AUTOGRAD_EDITED_PARAMETERS_H_
#define DSAT_TRAINER_AUTOGRAD_EDITED_PARAMETERS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/layout.h"

namespace dsat::trainer {

class EditedParameters {
 public:
  EditedParameters(const Layout& layout, const std::vector<std::vector<at::Tensor>>& leaves)
      : layout_(layout), leaves_(leaves) {}

  // As they are now, they are the engine's.
  void accept();
  // Throws dsat::Error that names the first parameter which is not as it was accepted, groups in `except` left out.
  void check(const std::vector<size_t>& except = {}) const;

 private:
  struct State {
    const c10::StorageImpl* storage;
    int64_t version;
  };

  const Layout& layout_;
  const std::vector<std::vector<at::Tensor>>& leaves_;
  std::vector<State> accepted_;  // in the order of the layout
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_AUTOGRAD_EDITED_PARAMETERS_H_
