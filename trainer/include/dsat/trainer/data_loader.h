// Data sets, and loaders that give each rank its share of the samples, in the same order in every run.
//
// The micro batches of an epoch have one global order: rank r of N gets the batches r, r + N, ... So one rank with N
// times the accumulation sees the same batches in the same order.
// Units: samples; lengths are micro batches of one rank. Threading: one rank, one thread; a loader may have workers.
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

// One micro batch: tensors of shape [samples, ...], such as images and labels.
using Tensors = std::vector<at::Tensor>;

// Samples that can be read in any order.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;  // samples
  // The samples at `indices`, each of [0, size()), stacked: every tensor's dimension 0 is indices.size(). With workers
  // it runs on several threads at once and in any order, so random draws need a generator of its own.
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

// The share of the data that a rank reads.
struct Shard {
  int64_t rank = 0;   // the data-parallel rank
  int64_t count = 1;  // the data-parallel world size
  uint64_t seed = 0;  // of the order
};

// One pass over the data, or the rest of a pass.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual std::optional<Tensors> next() = 0;  // nullopt: the pass is over
};

// A source of batches. Users may derive loaders of their own; dsat-trial accepts these only after
// disable_dataset_reproducibility_checks(), because the user is then responsible for their order.
class Loader {
 public:
  virtual ~Loader() = default;
  // The number of micro batches in a pass for one rank; it must be equal on all ranks.
  virtual int64_t length(const Shard& shard) const = 0;
  // The pass number `epoch`, counted from 0, beginning with its micro batch `first`.
  virtual std::unique_ptr<BatchSource> pass(const Shard& shard, int64_t epoch, int64_t first) = 0;
};

// Makes one micro batch of samples, for example by padding texts of different lengths. Each sample is as get() returns
// it, without the dimension of samples. With workers it runs on several threads at once.
using Collate = std::function<Tensors(const std::vector<Tensors>& samples)>;

struct DataLoaderOptions {
  bool shuffle = false;                    // a RandomSampler
  bool drop_last = false;                  // leave out the last micro batches of a pass if they are not full
  std::shared_ptr<const Sampler> sampler;  // chooses the samples and their order; not together with shuffle
  Collate collate;                         // none: get() stacks the samples
  int64_t num_workers = 0;                 // threads that prepare micro batches; 0: they are made on request
  int64_t prefetch_factor = 2;             // micro batches ahead for each worker
};

// The samples of a data set in micro batches of `batch_size`. Shuffling uses a permutation that depends only on the
// seed and the epoch. The last batches of a pass are filled with samples from its start, or left out (drop_last), so
// that all ranks get equally many batches of equal size. Workers change neither the order nor the batches.
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
  DataLoaderOptions options_;  // always with a sampler
};

// The source of the micro batches of train_batch() and evaluate_batch().
class BatchIterator {
 public:
  // Borrows the loader. `repeat`: begin a new pass after each, without end. `first`: micro batches to skip, counted
  // over all passes.
  BatchIterator(Loader& loader, Shard shard, bool repeat, int64_t first = 0);
  // For a rank without a loader, such as a middle stage of a pipeline: next() is an error.
  BatchIterator() = default;

  // The next micro batch. Past the end of the data: dsat::Error.
  Tensors next();
  int64_t taken() const { return taken_; }  // micro batches, with those skipped at the start

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
