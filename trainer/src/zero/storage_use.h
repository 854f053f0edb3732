// Tells before an operation reads a watched storage, and when the operation has ended: in forward and in backward, for
// any model, without hooks in it.
//
// A global at::RecordFunction callback sees every operation's inputs before its kernel runs.
// Threading: calls come on the thread that runs the operation; watches are made and ended while none runs.
// Errors: the user must not throw; LibTorch would swallow it and run the kernel.
#ifndef DSAT_TRAINER_ZERO_STORAGE_USE_H_
#define DSAT_TRAINER_ZERO_STORAGE_USE_H_

#include <c10/core/Storage.h>

#include <cstddef>
#include <vector>

namespace dsat::trainer {

class StorageUser {
 public:
  virtual ~StorageUser() = default;
  virtual void before_use(size_t id) noexcept = 0;
  virtual void after_use(size_t id) noexcept = 0;
};

class AccessWatch {
 public:
  // Borrows the user. storages[id] is told of as `id`.
  AccessWatch(StorageUser& user, std::vector<c10::Storage> storages);
  ~AccessWatch();
  AccessWatch(const AccessWatch&) = delete;
  AccessWatch& operator=(const AccessWatch&) = delete;

 private:
  std::vector<c10::Storage> storages_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_STORAGE_USE_H_
