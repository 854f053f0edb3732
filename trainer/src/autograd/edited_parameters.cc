// Compares each leaf's storage and version with those that were accepted last.
#include "autograd/edited_parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/error.h"

namespace dsat::trainer {

void EditedParameters::accept() {
  accepted_.clear();
  for (const auto& group : leaves_) {
    for (const at::Tensor& leaf : group) {
      accepted_.push_back({leaf.storage().unsafeGetStorageImpl(), leaf._version()});
    }
  }
}

void EditedParameters::check(const std::vector<size_t>& except) const {
  size_t i = 0;
  for (size_t group = 0; group < leaves_.size(); ++group) {
    const bool is_excepted = std::find(except.begin(), except.end(), group) != except.end();
    for (size_t k = 0; k < leaves_[group].size(); ++k, ++i) {
      const at::Tensor& leaf = leaves_[group][k];
      const bool is_elsewhere = leaf.storage().unsafeGetStorageImpl() != accepted_[i].storage;
      if (is_excepted || (!is_elsewhere && leaf._version() == accepted_[i].version)) continue;
      throw Error(
          fmt::format("parameter {} was {}: change parameters within engine->edit_parameters([&] {{ ... }}) only, "
                      "between steps and on all ranks",
                      layout_.groups()[group].parameters[k].spec.name,
                      is_elsewhere ? "given other memory (set_data, or to() of its module)" : "changed in place"));
    }
  }
}

}  // namespace dsat::trainer
