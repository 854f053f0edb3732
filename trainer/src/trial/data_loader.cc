// Draws a permutation for each epoch from the seed and deals micro batches out, ranks innermost.
// Any batch of any epoch can be reached directly, so that a resumed run reads on where it stopped.
#include "dsat/trainer/data_loader.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "dsat/error.h"
#include "dsat/random.h"

namespace dsat::trainer {
namespace {

std::vector<int64_t> order_of(int64_t size, bool shuffle, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!shuffle) return order;
  Random random(seed, static_cast<uint64_t>(epoch));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.uniform_below(i)]);
  return order;
}

class Pass : public BatchSource {
 public:
  Pass(const Dataset& dataset, std::vector<int64_t> order, int64_t batch_size, const Shard& shard, int64_t length,
       int64_t first)
      : dataset_(dataset),
        order_(std::move(order)),
        batch_size_(batch_size),
        shard_(shard),
        length_(length),
        next_(first) {}

  std::optional<Tensors> next() override {
    if (next_ >= length_) return std::nullopt;
    const int64_t begin = (next_++ * shard_.count + shard_.rank) * batch_size_;
    std::vector<int64_t> indices;
    for (int64_t i = begin; i < begin + batch_size_; ++i)
      indices.push_back(order_[static_cast<size_t>(i) % order_.size()]);
    return dataset_.get(indices);
  }

 private:
  const Dataset& dataset_;
  std::vector<int64_t> order_;
  int64_t batch_size_;
  Shard shard_;
  int64_t length_, next_;
};

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
    : dataset_(std::move(dataset)), batch_size_(batch_size), shuffle_(shuffle), drop_last_(drop_last) {
  if (!dataset_) throw Error("DataLoader: the data set is null");
  if (dataset_->size() <= 0) throw Error("DataLoader: the data set is empty");
  if (batch_size_ <= 0) throw Error(fmt::format("DataLoader: batch_size is {}; expected 1 or more", batch_size_));
}

int64_t DataLoader::length(const Shard& shard) const {
  const int64_t samples = batch_size_ * shard.count;  // of a micro batch on every rank
  const int64_t length = (dataset_->size() + (drop_last_ ? 0 : samples - 1)) / samples;
  if (length > 0) return length;
  throw Error(fmt::format(
      "DataLoader: {} samples are fewer than a micro batch of {} on each of {} ranks: use more data, smaller "
      "batches or no drop_last",
      dataset_->size(), batch_size_, shard.count));
}

std::unique_ptr<BatchSource> DataLoader::pass(const Shard& shard, int64_t epoch, int64_t first) {
  return std::make_unique<Pass>(*dataset_, order_of(dataset_->size(), shuffle_, shard.seed, epoch), batch_size_, shard,
                                length(shard), first);
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
