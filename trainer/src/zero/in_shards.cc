// A callback of at::RecordFunction sees the operations of the construction. A storage is found when an operation takes
// a parameter on it, or when a reader of files gives it to a tensor (set_); it is cut when the next operation begins
// that does not use it.
#include "dsat/trainer/in_shards.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "device/offload_memory.h"
#include "watch/heartbeat.h"
#include "zero/cut_storage.h"

namespace dsat::trainer {
namespace {

constexpr size_t kLeastBytes = 16 << 10;  // less is not worth the exchange

bool is_parameter(const at::Tensor& tensor) {
  return tensor.is_leaf() && tensor.requires_grad() && tensor.device().is_cpu();
}

}  // namespace

class ShardedConstruction::Impl {
 public:
  explicit Impl(Comm& comm) : comm_(comm) {
    if (comm.size() == 1) return;
    current = this;
    callback_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&on_operation).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~Impl() { end(); }

  void finish() {
    end();
    if (failure_) std::rethrow_exception(failure_);
    cut_idle();
    agree(0);
  }

  void finish(const std::vector<at::Tensor>& parameters) {
    finish();
    std::unordered_set<const c10::StorageImpl*> wanted;
    for (const at::Tensor& parameter : parameters) wanted.insert(parameter.storage().unsafeGetStorageImpl());
    for (const Known& known : known_) {
      const bool is_wanted = wanted.count(known.storage.unsafeGetStorageImpl()) > 0;
      if (!is_wanted && is_cut(known.storage)) make_whole(known.storage, comm_);
    }
  }

 private:
  // In the order of their first uses, which is the same on all ranks.
  struct Known {
    c10::Storage storage;
    int uses = 0;  // operations under way that read or write it
  };
  // Lives from an operation's start to its end.
  struct Uses : at::ObserverContext {
    explicit Uses(Impl& to) : impl(to) {}
    ~Uses() override {
      for (const size_t id : ids) --impl.known_[id].uses;
    }
    Impl& impl;
    std::vector<size_t> ids;
  };

  static std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction& function) {
    if (current == nullptr || current->is_busy_) return nullptr;
    return current->before(function);
  }

  // What fails here is thrown by finish(): LibTorch would swallow it, and run the operation all the same.
  std::unique_ptr<Uses> before(const at::RecordFunction& function) {
    auto uses = std::make_unique<Uses>(*this);
    is_busy_ = true;
    try {
      for (const c10::IValue& input : function.inputs()) {
        if (input.isStorage()) {
          use(input.toStorage(), /*is_new=*/true, *uses);
        } else if (input.isTensor()) {
          use(input.toTensor(), *uses);
        } else if (input.isTensorList()) {
          for (const at::Tensor& tensor : input.toTensorVector()) use(tensor, *uses);
        }
      }
      if (!failure_) cut_idle();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
    is_busy_ = false;
    return uses;
  }

  void use(const at::Tensor& tensor, Uses& uses) {
    if (tensor.defined() && tensor.has_storage()) use(tensor.storage(), is_parameter(tensor), uses);
  }
  void use(const c10::Storage& storage, bool is_new, Uses& uses) {
    auto found = ids_.find(storage.unsafeGetStorageImpl());
    if (found == ids_.end()) {
      if (!is_new || storage.nbytes() < kLeastBytes) return;
      found = ids_.emplace(storage.unsafeGetStorageImpl(), known_.size()).first;
      known_.push_back({storage});
      whole_.push_back(found->second);
    }
    ++known_[found->second].uses;
    uses.ids.push_back(found->second);
    if (!is_cut(storage)) return;
    try {
      if (failure_) std::rethrow_exception(failure_);
      agree(-static_cast<double>(storage.nbytes()));
      make_whole(storage, comm_);
    } catch (...) {
      // The operation runs in any case, so it must find memory.
      placeholders_.push_back(host_zeros(static_cast<int64_t>(storage.nbytes()), at::kByte, at::kCPU));
      storage.unsafeGetStorageImpl()->set_data_ptr_noswap({placeholders_.back().data_ptr(), at::kCPU});
      throw;
    }
    whole_.push_back(found->second);
  }

  // Before each exchange: ranks that are at different ones would read each other's bytes as their own.
  void agree(double step) {
    if (comm_.size() == 1) return;
    const WaitingIn waiting("in_shards(), in which all ranks must make the same model");
    const std::vector<double> bounds = max_over_ranks(comm_, {step, -step});
    if (bounds[0] == -bounds[1]) return;
    throw Error("ranks make different models in in_shards(): their parameters differ in size, number or order of use");
  }

  // A tensor that nobody else holds any more only waits for its end.
  void cut_idle() {
    std::vector<size_t> used;
    for (const size_t id : whole_) {
      const Known& known = known_[id];
      if (known.uses > 0) {
        used.push_back(id);
      } else if (known.storage.use_count() > 1) {
        agree(static_cast<double>(known.storage.nbytes()));
        cut(known.storage, comm_);
      }
    }
    whole_ = std::move(used);
  }

  void end() {
    if (current != this) return;
    current = nullptr;
    at::removeCallback(callback_);
  }

  static inline thread_local Impl* current = nullptr;

  Comm& comm_;
  at::CallbackHandle callback_ = 0;
  std::vector<Known> known_;
  std::unordered_map<const c10::StorageImpl*, size_t> ids_;
  std::vector<size_t> whole_;  // those of known_ that are not cut
  bool is_busy_ = false;
  std::exception_ptr failure_;
  std::vector<at::Tensor> placeholders_;  // after a failure
};

ShardedConstruction::ShardedConstruction(Comm& comm) : impl_(std::make_unique<Impl>(comm)) {}
ShardedConstruction::~ShardedConstruction() = default;
void ShardedConstruction::finish() { impl_->finish(); }
void ShardedConstruction::finish(const std::vector<at::Tensor>& parameters) { impl_->finish(parameters); }

}  // namespace dsat::trainer
