// Takes an order for each pass from the sampler and deals micro batches out, ranks innermost.
// Any batch of any pass can be made from its number alone: a resumed run reads on where it stopped, and workers make
// several at once.
#include "dsat/trainer/data_loader.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "dsat/error.h"
#include "trial/prefetch.h"

namespace dsat::trainer {
namespace {

// Micro batches of one pass on one rank, each made from its number alone.
struct PassPlan {
  std::shared_ptr<const Dataset> dataset;
  Collate collate;
  std::vector<int64_t> order;
  int64_t batch_size;
  Shard shard;

  std::vector<int64_t> indices_of(int64_t number) const {
    const int64_t begin = (number * shard.count + shard.rank) * batch_size;
    std::vector<int64_t> indices;
    for (int64_t i = begin; i < begin + batch_size; ++i)
      indices.push_back(order[static_cast<size_t>(i) % order.size()]);
    return indices;
  }

  Tensors micro_batch(int64_t number) const {
    const std::vector<int64_t> indices = indices_of(number);
    if (!collate) return dataset->get(indices);
    std::vector<Tensors> samples;
    for (const int64_t index : indices) {
      Tensors sample = dataset->get({index});
      for (at::Tensor& tensor : sample) tensor = tensor.squeeze(0);
      samples.push_back(std::move(sample));
    }
    return collate(samples);
  }
};

class Pass : public BatchSource {
 public:
  Pass(PassPlan plan, int64_t length, int64_t first) : plan_(std::move(plan)), length_(length), next_(first) {}

  std::optional<Tensors> next() override {
    if (next_ >= length_) return std::nullopt;
    return plan_.micro_batch(next_++);
  }

 private:
  PassPlan plan_;
  int64_t length_, next_;
};

class PrefetchedPass : public BatchSource {
 public:
  PrefetchedPass(PassPlan plan, int64_t length, int64_t first, int64_t workers, int64_t ahead)
      : plan_(std::move(plan)),
        left_(length - first),
        prefetch_([this](int64_t number) { return plan_.micro_batch(number); }, first, length, workers, ahead) {}

  std::optional<Tensors> next() override {
    if (left_ <= 0) return std::nullopt;
    --left_;
    return prefetch_.next();
  }

 private:
  PassPlan plan_;
  int64_t left_;
  Prefetch prefetch_;  // last: its threads use what stands above
};

std::vector<int64_t> checked_order(const Sampler& sampler, int64_t samples, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order = sampler.order(seed, epoch);
  if (static_cast<int64_t>(order.size()) != sampler.size()) {
    throw Error(
        fmt::format("DataLoader: the sampler gave {} indices for a pass, but its size() is {}: make the two agree",
                    order.size(), sampler.size()));
  }
  for (const int64_t index : order) {
    if (index >= 0 && index < samples) continue;
    throw Error(fmt::format("DataLoader: the sampler gave the index {}, but the data set has {} samples: 0 to {}",
                            index, samples, samples - 1));
  }
  return order;
}

DataLoaderOptions with_order(bool shuffle, bool drop_last) {
  DataLoaderOptions options;
  options.shuffle = shuffle;
  options.drop_last = drop_last;
  return options;
}

}  // namespace

TensorDataset::TensorDataset(Tensors tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw Error("TensorDataset: no tensors; give at least one of shape [samples, ...]");
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& tensor = tensors_[i];
    if (!tensor.defined() || tensor.dim() == 0)
      throw Error(fmt::format("TensorDataset: tensor {} has no dimension of samples", i));
    if (tensor.size(0) != tensors_[0].size(0)) {
      throw Error(fmt::format("TensorDataset: tensor {} has {} samples, tensor 0 has {}", i, tensor.size(0),
                              tensors_[0].size(0)));
    }
  }
}

Tensors TensorDataset::get(const std::vector<int64_t>& indices) const {
  Tensors batch;
  // Only read; from_blob has no const form.
  const at::Tensor rows = at::from_blob(const_cast<int64_t*>(indices.data()), {static_cast<int64_t>(indices.size())},
                                        at::TensorOptions().dtype(at::kLong));
  for (const at::Tensor& tensor : tensors_) batch.push_back(at::index_select(tensor, 0, rows.to(tensor.device())));
  return batch;
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, bool shuffle, bool drop_last)
    : DataLoader(std::move(dataset), batch_size, with_order(shuffle, drop_last)) {}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, DataLoaderOptions options)
    : dataset_(std::move(dataset)), batch_size_(batch_size), options_(std::move(options)) {
  if (!dataset_) throw Error("DataLoader: the data set is null");
  const int64_t samples = dataset_->size();
  if (samples <= 0) throw Error("DataLoader: the data set is empty");
  if (batch_size_ <= 0) throw Error(fmt::format("DataLoader: batch_size is {}; expected 1 or more", batch_size_));
  if (options_.num_workers < 0 || options_.prefetch_factor < 1) {
    throw Error(fmt::format("DataLoader: num_workers is {} and prefetch_factor {}; expected at least 0 and 1",
                            options_.num_workers, options_.prefetch_factor));
  }
  if (options_.shuffle && options_.sampler) throw Error("DataLoader: shuffle beside a sampler: give one of them");
  if (options_.shuffle) options_.sampler = std::make_shared<RandomSampler>(samples);
  if (!options_.sampler) options_.sampler = std::make_shared<SequentialSampler>(samples);
  if (options_.sampler->size() <= 0) throw Error("DataLoader: the sampler has no samples");
}

int64_t DataLoader::length(const Shard& shard) const {
  const int64_t samples = batch_size_ * shard.count;  // of a micro batch on every rank
  const int64_t size = options_.sampler->size();
  const int64_t length = (size + (options_.drop_last ? 0 : samples - 1)) / samples;
  if (length > 0) return length;
  throw Error(fmt::format(
      "DataLoader: {} samples are fewer than a micro batch of {} on each of {} ranks: use more data, smaller "
      "batches or no drop_last",
      size, batch_size_, shard.count));
}

std::unique_ptr<BatchSource> DataLoader::pass(const Shard& shard, int64_t epoch, int64_t first) {
  PassPlan plan{dataset_, options_.collate, checked_order(*options_.sampler, dataset_->size(), shard.seed, epoch),
                batch_size_, shard};
  if (options_.num_workers == 0) return std::make_unique<Pass>(std::move(plan), length(shard), first);
  return std::make_unique<PrefetchedPass>(std::move(plan), length(shard), first, options_.num_workers,
                                          options_.num_workers * options_.prefetch_factor);
}

BatchIterator::BatchIterator(Loader& loader, Shard shard, bool repeat, int64_t first)
    : loader_(&loader), shard_(shard), repeat_(repeat), length_(loader.length(shard)), taken_(first) {
  if (length_ <= 0) throw Error(fmt::format("a data loader has {} batches for a pass; expected 1 or more", length_));
  epoch_ = taken_ / length_;
  source_ = loader.pass(shard_, epoch_, taken_ % length_);
}

Tensors BatchIterator::next() {
  if (loader_ == nullptr) throw Error("next(): this rank builds no data loader (should_build_data_loader is false)");
  std::optional<Tensors> batch = source_->next();
  if (!batch && repeat_) {
    source_ = loader_->pass(shard_, ++epoch_, 0);
    batch = source_->next();
  }
  if (!batch) {
    throw Error(fmt::format("next(): the data is at its end after {} micro batches of {}", taken_, length_));
  }
  ++taken_;
  return std::move(*batch);
}

}  // namespace dsat::trainer
