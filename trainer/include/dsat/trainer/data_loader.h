// Data sets and how their samples reach the ranks: in the same order in every run, each rank its share.
//
// Micro batches of an epoch are numbered through, ranks innermost: rank r of N gets the batches r, r + N, ... of the
// global order, so one rank with N times the accumulation sees the same ones in the same order.
// Units: samples; lengths are micro batches of one rank. Threading: one rank, one thread, and a loader's own workers.
// Ownership: a loader shares its data set. Errors: dsat::Error, one line.
#ifndef DSAT_TRAINER_DATA_LOADER_H_
#define DSAT_TRAINER_DATA_LOADER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dsat/trainer/sampler.h"

namespace dsat::trainer {

// One micro batch: tensors of shape [samples, ...], images and labels say.
using Tensors = std::vector<at::Tensor>;

// Samples that can be asked for in any order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;  // samples
  // The samples at `indices`, each of [0, size()), stacked: every tensor's dimension 0 is indices.size(). With workers
  // it runs on several threads at once, in no order that is known: what it draws, it draws from a generator of its own.
  virtual Tensors get(const std::vector<int64_t>& indices) const = 0;
};

// Samples that lie in memory: tensors of shape [size, ...], all of one size.
class TensorDataset : public Dataset {
 public:
  explicit TensorDataset(Tensors tensors);
  int64_t size() const override { return tensors_[0].size(0); }
  Tensors get(const std::vector<int64_t>& indices) const override;

 private:
  Tensors tensors_;
};

// Which share of the data a rank reads.
struct Shard {
  int64_t rank = 0;   // its data-parallel rank
  int64_t count = 1;  // the data-parallel world size
  uint64_t seed = 0;  // of the order
};

// One pass, or the rest of one.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual std::optional<Tensors> next() = 0;  // nullopt: the pass is over
};

// Where batches come from. Loaders of the user's own derive from this; dsat-trial takes them once
// disable_dataset_reproducibility_checks() says that their order is the user's matter.
class Loader {
 public:
  virtual ~Loader() = default;
  // Micro batches in a pass for one rank; every rank must have as many.
  virtual int64_t length(const Shard& shard) const = 0;
  // The pass number `epoch`, counted from 0, from its micro batch `first` on.
  virtual std::unique_ptr<BatchSource> pass(const Shard& shard, int64_t epoch, int64_t first) = 0;
};

// One micro batch made of samples, each as get() gives it alone, without the dimension of samples: texts of different
// lengths that are filled up, say. With workers it runs on several threads at once.
using Collate = std::function<Tensors(const std::vector<Tensors>& samples)>;

struct DataLoaderOptions {
  bool shuffle = false;                    // a RandomSampler
  bool drop_last = false;                  // leave the last micro batches of a pass out where they are not full
  std::shared_ptr<const Sampler> sampler;  // which samples in which order; not beside shuffle
  Collate collate;                         // none: get() stacks them
  int64_t num_workers = 0;                 // threads that make micro batches ahead; 0: made when they are asked for
  int64_t prefetch_factor = 2;             // micro batches ahead for each worker
};

// The samples of a data set in micro batches of `batch_size`. Shuffled: by a permutation that depends on the seed and
// the epoch alone. The last batches of a pass are filled up with samples from its start, or left out (drop_last), so
// that all ranks see batches of one size and as many of them. Workers change neither the order nor the batches.
class DataLoader : public Loader {
 public:
  DataLoader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, bool shuffle = false, bool drop_last = false);
  DataLoader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, DataLoaderOptions options);

  int64_t batch_size() const { return batch_size_; }
  const Dataset& dataset() const { return *dataset_; }
  int64_t length(const Shard& shard) const override;
  std::unique_ptr<BatchSource> pass(const Shard& shard, int64_t epoch, int64_t first) override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  int64_t batch_size_;
  DataLoaderOptions options_;  // with a sampler in any case
};

// What train_batch() and evaluate_batch() take their micro batches from.
class BatchIterator {
 public:
  // Borrows the loader. `repeat`: pass after pass, for ever. `first`: micro batches, of all passes, to leave out.
  BatchIterator(Loader& loader, Shard shard, bool repeat, int64_t first = 0);
  // A rank that builds no loader (of a pipeline's middle, say): next() is an error.
  BatchIterator() = default;

  // The next micro batch. Past the end of the data: dsat::Error.
  Tensors next();
  int64_t taken() const { return taken_; }  // micro batches, those left out at the start included

 private:
  Loader* loader_ = nullptr;
  Shard shard_;
  bool repeat_ = false;
  int64_t length_ = 0;
  int64_t taken_ = 0;
  int64_t epoch_ = 0;
  std::unique_ptr<BatchSource> source_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DATA_LOADER_H_
