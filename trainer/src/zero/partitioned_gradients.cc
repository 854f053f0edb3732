// Before autograd accumulates a gradient, its parameter gets a view into a bucket; when the bucket is complete it is
// reduced, and this rank's part of the sum is added to its shard. Then the bucket's memory serves the next bucket.
#include "zero/partitioned_gradients.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "comm/comm_thread.h"
#include "device/offload_memory.h"

namespace dsat::trainer {

PartitionedGradients::PartitionedGradients(const ZeroContext& context, Parameters& parameters,
                                           std::function<void(size_t)> group_done)
    : c_(context),
      reducer_(context),
      group_done_(std::move(group_done)),
      shard_(state_zeros(context.partition.shard_size(), context.dtype, context.device,
                         context.settings.offload_optimizer)),
      hooks_(
          context.layout, parameters.groups(), [this](GradientEntry& entry) { before_accumulation(entry); },
          [this](GradientEntry& entry) { after_accumulation(entry); }),
      bucket_size_(
          std::min(context.layout.size(), std::max(context.settings.reduce_bucket, context.layout.largest_group()))) {
  cut_into_buckets();
}

// From the last group to the first, as backward delivers gradients: a bucket is full where the next group would not
// fit.
void PartitionedGradients::cut_into_buckets() {
  const std::vector<GroupSlot>& groups = c_.layout.groups();
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
  for (size_t i = 0; i < held_buckets(); ++i) free_memory_.push_back(at::empty({bucket_size_}, c_.options()));
}

void PartitionedGradients::end_step() {
  shard_.zero_();
  free_memory_.clear();
  reducer_.end_step();
}

void PartitionedGradients::begin_backward(bool) {
  hooks_.begin_backward();
  missing_in_group_.clear();
  for (const GroupSlot& group : c_.layout.groups()) {
    missing_in_group_.push_back(static_cast<int>(group.parameters.size()));
  }
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  next_bucket_ = 0;
}

// Held memory as soon as a reduction gives some back; new memory only where the buckets under way do not.
at::Tensor PartitionedGradients::take_memory(int64_t size) {
  while (free_memory_.empty() && !under_way_.empty()) finish_oldest();
  if (free_memory_.empty()) return at::empty({size}, c_.options());
  at::Tensor memory = std::move(free_memory_.back());
  free_memory_.pop_back();
  return memory;
}

// Zero, because autograd adds to a gradient that is there, and what no parameter fills must not change the sum.
void PartitionedGradients::give_zeros(Bucket& bucket) {
  bucket.memory = take_memory(bucket.size);
  bucket.memory.narrow(0, 0, bucket.size).zero_();
}

// The view makes autograd add the gradient to the bucket: without it autograd would keep memory of its own for it.
void PartitionedGradients::before_accumulation(GradientEntry& entry) {
  Bucket& bucket = buckets_[bucket_of_group_[entry.group]];
  // A piece of a gradient that comes after its bucket has left travels by itself when backward ends.
  while (bucket.pending != nullptr) finish_oldest();
  if (!bucket.memory.defined()) give_zeros(bucket);
  const ParameterSlot& slot = *entry.slot;
  entry.leaf.mutable_grad() = bucket.memory.narrow(0, slot.begin - bucket.begin, slot.size).view(slot.spec.shape);
}

// The bucket holds the gradient now: without the view autograd finds none at the next micro step. Buckets leave in
// their order on every rank, so a complete one waits for those before it.
void PartitionedGradients::after_accumulation(GradientEntry& entry) {
  entry.leaf.mutable_grad().reset();
  if (entry.arrived != entry.expected) return;
  if (--missing_in_group_[entry.group] == 0) group_done_(entry.group);
  --buckets_[bucket_of_group_[entry.group]].missing;
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0) {
    start_reduction(buckets_[next_bucket_++]);
  }
}

// A bucket in which no gradient has arrived is reduced too, as zeros: the other ranks may have gradients there.
void PartitionedGradients::start_reduction(Bucket& bucket) {
  if (!bucket.memory.defined()) give_zeros(bucket);
  const auto number = static_cast<int64_t>(&bucket - buckets_.data());
  bucket.pending = reducer_.start_bucket(number, bucket.memory.narrow(0, 0, bucket.size), bucket.begin);
  under_way_.push_back(&bucket);
  if (!c_.settings.overlap_comm) finish_oldest();
}

// Waits for the oldest bucket's sums, adds this rank's part to the shard (which collects the micro steps, and lies on
// the host with offload_optimizer) and gives the bucket's memory back.
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
  // Memory of another size was taken for this bucket alone.
  const bool is_held = c_.settings.contiguous_gradients && free_memory_.size() < held_buckets();
  if (is_held && bucket.memory.numel() == bucket_size_) free_memory_.push_back(std::move(bucket.memory));
  bucket.memory.reset();
}

void PartitionedGradients::end_backward() {
  hooks_.end_backward();
  while (next_bucket_ < buckets_.size()) start_reduction(buckets_[next_bucket_++]);
  while (!under_way_.empty()) finish_oldest();
  // Pieces of gradients that came after their bucket had left (before_accumulation) are summed as a second round.
  const std::vector<double> late = late_buckets();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (late[i] > 0) start_reduction(buckets_[i]);
  }
  while (!under_way_.empty()) finish_oldest();
}

// Above 0 for each bucket that holds late pieces on any rank: all ranks start the same sums, whatever each has used.
std::vector<double> PartitionedGradients::late_buckets() {
  std::vector<double> late;
  for (const Bucket& bucket : buckets_) late.push_back(bucket.memory.defined() ? 1 : 0);
  if (c_.comm.size() == 1) return late;
  c_.comm_thread.run("the comparison of late gradients", [&](Comm& comm) { late = max_over_ranks(comm, late); });
  return late;
}

}  // namespace dsat::trainer
