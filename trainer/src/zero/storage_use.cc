#include "zero/storage_use.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <unordered_map>
#include <utility>

namespace dsat::trainer {
namespace {

struct Watched {
  StorageUser* user;
  size_t id;
};

struct Registry {
  std::unordered_map<const c10::StorageImpl*, Watched> watched;
  at::CallbackHandle callback = 0;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

// What an operation uses, until it ends.
struct Uses : at::ObserverContext {
  std::vector<Watched> list;
  ~Uses() override {
    for (const Watched& one : list) one.user->after_use(one.id);
  }
};

void use(const at::Tensor& tensor, std::unique_ptr<Uses>& uses) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const auto found = registry().watched.find(tensor.storage().unsafeGetStorageImpl());
  if (found == registry().watched.end()) return;
  if (!uses) uses = std::make_unique<Uses>();
  uses->list.push_back(found->second);
  found->second.user->before_use(found->second.id);
}

std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction& function) {
  std::unique_ptr<Uses> uses;
  for (const c10::IValue& input : function.inputs()) {
    if (input.isTensor()) {
      use(input.toTensor(), uses);
    } else if (input.isTensorList()) {
      for (const at::Tensor& tensor : input.toTensorVector()) use(tensor, uses);
    } else if (input.isOptionalTensorList()) {
      for (const c10::optional<at::Tensor>& tensor : input.toOptionalTensorVector()) {
        if (tensor) use(*tensor, uses);
      }
    }
  }
  return uses;
}

}  // namespace

AccessWatch::AccessWatch(StorageUser& user, std::vector<c10::Storage> storages) : storages_(std::move(storages)) {
  Registry& all = registry();
  if (all.watched.empty()) {
    all.callback = at::addGlobalCallback(
        at::RecordFunctionCallback(&on_operation).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  for (size_t id = 0; id < storages_.size(); ++id) {
    all.watched[storages_[id].unsafeGetStorageImpl()] = {&user, id};
  }
}

AccessWatch::~AccessWatch() {
  Registry& all = registry();
  for (const c10::Storage& storage : storages_) all.watched.erase(storage.unsafeGetStorageImpl());
  if (all.watched.empty()) at::removeCallback(all.callback);
}

}  // namespace dsat::trainer
