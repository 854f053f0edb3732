#include "partitioned_gradients.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "sharded_optimizer.h"

namespace dsat::trainer {

using torch::autograd::variable_list;

PartitionedGradients::PartitionedGradients(const ZeroContext& context, Parameters& parameters,
                                           std::function<void(size_t)> layer_done)
    : c_(context),
      reducer_(context),
      layer_done_(std::move(layer_done)),
      shard_(optimizer_zeros(context.settings, context.partition.shard_size(), context.dtype)) {
  for (size_t layer = 0; layer < c_.layout.layers().size(); ++layer) {
    const std::vector<ParameterSlot>& slots = c_.layout.layers()[layer].parameters;
    missing_.push_back(slots.size());
    for (size_t k = 0; k < slots.size(); ++k) {
      const at::Tensor& leaf = parameters.layers()[layer][k];
      entries_.push_back({layer, &slots[k], leaf, torch::autograd::impl::grad_accumulator(leaf)});
      watch(entries_.size() - 1);
    }
  }
  buckets_.resize(c_.settings.overlap_comm ? 2 : 1);
}

void PartitionedGradients::watch(size_t entry) {
  entries_[entry].leaf.register_hook([this, entry](const at::Tensor&) { place(entry); });
  entries_[entry].accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [this, entry](const variable_list& outputs, const variable_list&) {
        arrived(entry);
        return outputs;
      }));
}

void PartitionedGradients::begin_step() {
  reducer_.begin_step();
  const int64_t size = std::min(c_.layout.size(), std::max(c_.settings.reduce_bucket, c_.layout.largest_layer()));
  for (Bucket& bucket : buckets_) {
    bucket.memory = at::empty({size}, at::TensorOptions().dtype(c_.dtype));
    bucket.free = size;
  }
}

void PartitionedGradients::end_step() {
  shard_.zero_();
  for (Bucket& bucket : buckets_) bucket.memory.reset();
  reducer_.end_step();
}

void PartitionedGradients::place(size_t entry) {
  const ParameterSlot& slot = *entries_[entry].slot;
  if (buckets_[filling_].free < slot.size) flush();
  Bucket& bucket = buckets_[filling_];
  bucket.free -= slot.size;
  // The new run lies just before the last one; they are one if they are neighbours in the flat array too.
  if (!bucket.runs.empty() && slot.begin + slot.size == bucket.runs.back().begin) {
    bucket.runs.back() = {bucket.free, slot.begin, bucket.runs.back().size + slot.size};
  } else {
    bucket.runs.push_back({bucket.free, slot.begin, slot.size});
  }
  entries_[entry].leaf.mutable_grad() = bucket.memory.narrow(0, bucket.free, slot.size).zero_().view(slot.spec.shape);
}

void PartitionedGradients::arrived(size_t entry) {
  entries_[entry].leaf.mutable_grad().reset();
  const size_t layer = entries_[entry].layer;
  if (--missing_[layer] > 0) return;
  missing_[layer] = c_.layout.layers()[layer].parameters.size();
  layer_done_(layer);
}

void PartitionedGradients::flush() {
  Bucket& bucket = buckets_[filling_];
  for (const Run& run : bucket.runs) {
    if (!c_.settings.reduce_scatter) {
      reducer_.start(bucket.memory.narrow(0, run.at, run.size), Reducer::kAllRanks, bucket.pending);
      continue;
    }
    for (const Piece& piece : c_.partition.pieces(run.begin, run.size)) {
      const int64_t at = run.at + piece.begin - run.begin;
      reducer_.start(bucket.memory.narrow(0, at, piece.size), piece.owner, bucket.pending);
    }
  }
  filling_ = (filling_ + 1) % buckets_.size();
  finish(buckets_[filling_]);
}

// Waits for the bucket's sums, keeps this rank's part and empties it.
void PartitionedGradients::finish(Bucket& bucket) {
  wait_all(bucket.pending);
  for (const Run& run : bucket.runs) {
    for (const Piece& piece : c_.partition.pieces(run.begin, run.size)) {
      if (piece.owner != c_.comm.rank()) continue;
      const int64_t at = run.at + piece.begin - run.begin;
      with_data(bucket.memory, [&](auto* from) {
        auto* const to = static_cast<decltype(from)>(shard_.data_ptr()) + piece.shard_begin;
        for (int64_t i = 0; i < piece.size; ++i) assign(to[i], to_float(to[i]) + to_float(from[at + i]));
      });
    }
  }
  bucket.runs.clear();
  bucket.free = bucket.memory.numel();
}

void PartitionedGradients::after_micro_step(bool) {
  flush();
  for (Bucket& bucket : buckets_) finish(bucket);
}

}  // namespace dsat::trainer
