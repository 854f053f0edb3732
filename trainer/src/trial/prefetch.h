// Makes micro batches ahead on threads of its own and gives them in their order.
//
// Threading: next() by one thread; `make` runs on all workers at once, without gradients. Ownership: joins its threads
// at its end, after the batches under way. Errors: what `make` throws comes out of next() in that batch's place.
#ifndef DSAT_TRAINER_TRIAL_PREFETCH_H_
#define DSAT_TRAINER_TRIAL_PREFETCH_H_

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "dsat/trainer/data_loader.h"

namespace dsat::trainer {

class Prefetch {
 public:
  using Make = std::function<Tensors(int64_t number)>;
  // Batches `first` to before `end`; no more than `ahead` of them wait or are under way.
  Prefetch(Make make, int64_t first, int64_t end, int64_t workers, int64_t ahead);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The next one; there must be one.
  Tensors next();

 private:
  struct Made {
    Tensors batch;
    std::exception_ptr error;
  };
  void work();
  Made made(int64_t number) const;

  const Make make_;
  const int64_t end_, ahead_;
  std::mutex mutex_;  // guards what follows but the threads
  std::condition_variable changed_;
  int64_t next_to_make_, next_to_give_;
  std::map<int64_t, Made> made_;
  bool stops_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_PREFETCH_H_
