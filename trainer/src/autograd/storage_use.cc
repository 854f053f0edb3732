// One global callback looks up every tensor among an operation's inputs in a table of watched storages. It is there
// only while something is watched, because it costs a little in every operation.
#include "autograd/storage_use.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <unordered_map>
#include <utility>

namespace dsat::trainer {
namespace {

struct WatchedStorage {
  StorageUseListener* listener;
  size_t id;
};

struct Registry {
  std::unordered_map<const c10::StorageImpl*, WatchedStorage> watched;
  at::CallbackHandle callback = 0;
};

// Never destroyed: operations of other threads may run while the process ends.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

// The watched storages that an operation reads. LibTorch destroys this when the operation has ended.
struct OperationUses : at::ObserverContext {
  std::vector<WatchedStorage> list;
  ~OperationUses() override {
    for (const WatchedStorage& one : list) one.listener->after_use(one.id);
  }
};

// Notes the use first, so that after_use() follows even if nothing else of the operation succeeds.
void use(const at::Tensor& tensor, std::unique_ptr<OperationUses>& uses) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const auto found = registry().watched.find(tensor.storage().unsafeGetStorageImpl());
  if (found == registry().watched.end()) return;
  if (!uses) uses = std::make_unique<OperationUses>();
  uses->list.push_back(found->second);
  found->second.listener->before_use(found->second.id);
}

std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction& function) {
  std::unique_ptr<OperationUses> uses;
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

StorageUseWatch::StorageUseWatch(StorageUseListener& listener, std::vector<c10::Storage> storages)
    : storages_(std::move(storages)) {
  Registry& all = registry();
  if (all.watched.empty()) {
    all.callback = at::addGlobalCallback(
        at::RecordFunctionCallback(&on_operation).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  for (size_t id = 0; id < storages_.size(); ++id) {
    all.watched[storages_[id].unsafeGetStorageImpl()] = {&listener, id};
  }
}

StorageUseWatch::~StorageUseWatch() {
  Registry& all = registry();
  for (const c10::Storage& storage : storages_) all.watched.erase(storage.unsafeGetStorageImpl());
  if (all.watched.empty()) at::removeCallback(all.callback);
}

}  // namespace dsat::trainer
