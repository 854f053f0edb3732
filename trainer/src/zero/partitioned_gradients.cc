#include "zero/partitioned_gradients.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "zero/sharded_optimizer.h"

namespace dsat::trainer {

PartitionedGradients::PartitionedGradients(const ZeroContext& context, Parameters& parameters,
                                           std::function<void(size_t)> group_done)
    : c_(context),
      reducer_(context),
      group_done_(std::move(group_done)),
      shard_(optimizer_zeros(context, context.partition.shard_size(), context.dtype)),
      hooks_(
          context.layout, parameters.layers(), [this](GradientEntry& entry) { place(entry); },
          [this](GradientEntry& entry) { arrived(entry); }),
      bucket_size_(
          std::min(context.layout.size(), std::max(context.settings.reduce_bucket, context.layout.largest_layer()))) {
  cut_into_buckets();
}

void PartitionedGradients::cut_into_buckets() {
  const std::vector<LayerSlot>& groups = c_.layout.layers();
  bucket_of_group_.resize(groups.size());
  for (size_t group = groups.size(); group-- > 0;) {
    if (buckets_.empty() || buckets_.back().size + groups[group].size > bucket_size_) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.begin = groups[group].begin;
    bucket.size += groups[group].size;
    bucket.parameters += static_cast<int>(groups[group].parameters.size());
    bucket_of_group_[group] = buckets_.size() - 1;
  }
}

void PartitionedGradients::begin_step() {
  reducer_.begin_step();
  if (!c_.settings.contiguous_gradients) return;
  for (int i = 0; i < (c_.settings.overlap_comm ? 2 : 1); ++i) {
    free_.push_back(at::empty({bucket_size_}, c_.options()));
  }
}

void PartitionedGradients::end_step() {
  shard_.zero_();
  free_.clear();
  reducer_.end_step();
}

void PartitionedGradients::begin_backward(bool) {
  hooks_.begin_backward();
  missing_in_group_.clear();
  for (const LayerSlot& group : c_.layout.layers()) {
    missing_in_group_.push_back(static_cast<int>(group.parameters.size()));
  }
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  next_ = 0;
}

at::Tensor PartitionedGradients::take(int64_t size) {
  while (free_.empty() && !under_way_.empty()) finish_oldest();
  if (free_.empty()) return at::empty({size}, c_.options());
  at::Tensor memory = std::move(free_.back());
  free_.pop_back();
  return memory;
}

void PartitionedGradients::fill(Bucket& bucket) {
  bucket.memory = take(bucket.size);
  bucket.memory.narrow(0, 0, bucket.size).zero_();
}

void PartitionedGradients::place(GradientEntry& entry) {
  Bucket& bucket = buckets_[bucket_of_group_[entry.group]];
  // A piece of a gradient that comes after its bucket has left travels once more when backward ends.
  while (bucket.pending != nullptr) finish_oldest();
  if (!bucket.memory.defined()) fill(bucket);
  const ParameterSlot& slot = *entry.slot;
  entry.leaf.mutable_grad() = bucket.memory.narrow(0, slot.begin - bucket.begin, slot.size).view(slot.spec.shape);
}

void PartitionedGradients::arrived(GradientEntry& entry) {
  entry.leaf.mutable_grad().reset();
  if (entry.arrived != entry.expected) return;
  if (--missing_in_group_[entry.group] == 0) group_done_(entry.group);
  --buckets_[bucket_of_group_[entry.group]].missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) flush(buckets_[next_++]);
}

void PartitionedGradients::flush(Bucket& bucket) {
  if (!bucket.memory.defined()) fill(bucket);
  std::vector<Summand> summands;
  if (!c_.settings.reduce_scatter) {
    summands.push_back({bucket.memory.narrow(0, 0, bucket.size)});
  } else {
    for (const Piece& piece : c_.partition.pieces(bucket.begin, bucket.size)) {
      summands.push_back({bucket.memory.narrow(0, piece.begin - bucket.begin, piece.size), piece.owner});
    }
  }
  const std::string number = std::to_string(&bucket - buckets_.data());
  bucket.pending = reducer_.start("the sum of gradient bucket " + number, std::move(summands));
  under_way_.push_back(&bucket);
  if (!c_.settings.overlap_comm) finish_oldest();
}

// Waits for the bucket's sums, keeps this rank's part and gives its memory back.
void PartitionedGradients::finish_oldest() {
  Bucket& bucket = *under_way_.front();
  under_way_.pop_front();
  if (bucket.pending) bucket.pending->wait();
  bucket.pending.reset();
  for (const Piece& piece : c_.partition.pieces(bucket.begin, bucket.size)) {
    if (piece.owner != c_.comm.rank()) continue;
    const at::Tensor part = bucket.memory.narrow(0, piece.begin - bucket.begin, piece.size);
    shard_.narrow(0, piece.shard_begin, piece.size).add_(part.to(shard_.device()));
  }
  const bool is_held = c_.settings.contiguous_gradients && free_.size() < (c_.settings.overlap_comm ? 2u : 1u);
  if (is_held && bucket.memory.numel() == bucket_size_) free_.push_back(std::move(bucket.memory));
  bucket.memory.reset();
}

void PartitionedGradients::end_backward() {
  while (next_ < buckets_.size()) flush(buckets_[next_++]);
  while (!under_way_.empty()) finish_oldest();
  for (Bucket& bucket : buckets_) {
    if (bucket.memory.defined()) flush(bucket);
  }
  while (!under_way_.empty()) finish_oldest();
}

}  // namespace dsat::trainer
