// Reports when operations read a watched storage: before each one, and after it has ended. That works in forward and in
// backward, for any model, without hooks in it.
//
// A global at::RecordFunction callback sees every operation's inputs before its kernel runs. Stage 3 gathers parameters
// with it (gathered_parameters.h). Ownership: a watch shares the storages and borrows its listener.
// Threading: calls come on the thread that runs the operation, in this trainer the compute thread; watches are made and
// ended while no operation runs. Errors: a listener must not throw, because LibTorch would swallow the exception and
// run the kernel all the same.
#ifndef DSAT_TRAINER_AUTOGRAD_STORAGE_USE_H_
#define DSAT_TRAINER_AUTOGRAD_STORAGE_USE_H_

#include <c10/core/Storage.h>

#include <cstddef>
#include <vector>

namespace dsat::trainer {

class StorageUseListener {
 public:
  virtual ~StorageUseListener() = default;
  // `id`: the storage's number in its watch. An operation with several inputs of one storage calls both for each input.
  virtual void before_use(size_t id) noexcept = 0;
  virtual void after_use(size_t id) noexcept = 0;
};

class StorageUseWatch {
 public:
  // storages[id] is reported as `id`.
  StorageUseWatch(StorageUseListener& listener, std::vector<c10::Storage> storages);
  ~StorageUseWatch();
  StorageUseWatch(const StorageUseWatch&) = delete;
  StorageUseWatch& operator=(const StorageUseWatch&) = delete;

 private:
  std::vector<c10::Storage> storages_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_AUTOGRAD_STORAGE_USE_H_
