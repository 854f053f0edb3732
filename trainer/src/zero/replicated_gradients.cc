// Gradients of stages 0 and 1: one flat array with all of them on every rank, reduced in buckets from its end to its
// front. With overlap_comm, hooks count what has arrived, so that a bucket leaves as soon as it is complete.
#include "zero/replicated_gradients.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autograd/gradient_hooks.h"
#include "zero/reducer.h"

namespace dsat::trainer {
namespace {

// Every gradient is a view of the flat array from the start, so autograd accumulates into it over the micro steps.
class ReplicatedGradients : public Gradients {
 public:
  ReplicatedGradients(const ZeroContext& c, Parameters& parameters)
      : c_(c), reducer_(c), flat_(at::zeros({c.layout.size()}, c.options())) {
    for (size_t i = 0; i < c.layout.groups().size(); ++i) {
      const GroupSlot& layer = c.layout.groups()[i];
      for (size_t k = 0; k < layer.parameters.size(); ++k) {
        const ParameterSlot& slot = layer.parameters[k];
        parameters.groups()[i][k].mutable_grad() = flat_.narrow(0, slot.begin, slot.size).view(slot.spec.shape);
      }
    }
    // Without overlap nobody needs to know when a gradient arrives: all are there when backward ends.
    GradientHooks::Callback after;
    if (overlaps()) after = [this](GradientEntry& entry) { arrived(entry); };
    hooks_ = std::make_unique<GradientHooks>(c.layout, parameters.groups(), nullptr, std::move(after));
  }

  void begin_step() override { reducer_.begin_step(); }

  // Only the last backward of a step is reduced: the micro steps before it accumulate on each rank alone.
  void begin_backward(bool is_last) override {
    is_last_ = is_last;
    hooks_->begin_backward();
    if (!overlaps()) return;
    missing_.assign(static_cast<size_t>(num_buckets()), 0);
    for (const GradientEntry& entry : hooks_->entries()) count(*entry.slot, +1);
    next_bucket_ = 0;
  }

  void end_backward() override {
    hooks_->end_backward();
    if (is_last_) {
      while (next_bucket_ < num_buckets()) reduce(next_bucket_++);
      wait_all(pending_);
    }
    has_seen_a_backward_ = true;
    next_bucket_ = 0;
  }

  void abandon_backward() override { hooks_->end_backward(); }

  at::Tensor shard() const override {
    if (c_.settings.stage == 0) return flat_;
    const int64_t size = c_.partition.shard_size();
    return flat_.narrow(0, c_.comm.rank() * size, size);
  }

  void end_step() override {
    flat_.zero_();
    reducer_.end_step();
  }

 private:
  bool overlaps() const { return c_.comm.size() > 1 && c_.settings.overlap_comm; }
  // Bucket b ends b * reduce_bucket elements before the end of the flat array: backward delivers the last layers first.
  int64_t num_buckets() const { return (flat_.numel() + c_.settings.reduce_bucket - 1) / c_.settings.reduce_bucket; }
  int64_t bucket_of(int64_t element) const { return (flat_.numel() - 1 - element) / c_.settings.reduce_bucket; }
  // A parameter may lie in several buckets: each of them misses it.
  void count(const ParameterSlot& slot, int by) {
    if (slot.size == 0) return;
    for (int64_t b = bucket_of(slot.begin + slot.size - 1); b <= bucket_of(slot.begin); ++b) {
      missing_[static_cast<size_t>(b)] += by;
    }
  }

  // Called by the hooks. Buckets leave in their order on every rank, so a complete one waits for those before it.
  void arrived(GradientEntry& entry) {
    if (!is_last_) return;
    if (entry.arrived > entry.expected && entry.slot->size > 0 &&
        bucket_of(entry.slot->begin + entry.slot->size - 1) < next_bucket_) {
      throw Error(
          fmt::format("{} got another gradient after its sum had begun: it is used more often than before; set "
                      "overlap_comm to false",
                      entry.slot->spec.name));
    }
    if (entry.arrived != entry.expected) return;
    count(*entry.slot, -1);
    // In the first backward nobody knows how many pieces a gradient has (GradientEntry::expected): wait for its end.
    if (!has_seen_a_backward_) return;
    while (next_bucket_ < num_buckets() && missing_[static_cast<size_t>(next_bucket_)] == 0) reduce(next_bucket_++);
  }

  // Without overlap_comm nothing else happens meanwhile, so the sum is waited for at once.
  void reduce(int64_t bucket) {
    const int64_t end = flat_.numel() - bucket * c_.settings.reduce_bucket;
    const int64_t begin = std::max<int64_t>(0, end - c_.settings.reduce_bucket);
    pending_.push_back(reducer_.start_bucket(bucket, flat_.narrow(0, begin, end - begin), begin));
    if (!c_.settings.overlap_comm) wait_all(pending_);
  }

  ZeroContext c_;
  Reducer reducer_;
  at::Tensor flat_;
  std::unique_ptr<GradientHooks> hooks_;
  std::vector<int> missing_;  // with overlap_comm between ranks: parameters per bucket whose gradient has not arrived
  int64_t next_bucket_ = 0;   // the first that is not being reduced
  bool is_last_ = false;
  bool has_seen_a_backward_ = false;
  std::vector<std::unique_ptr<Pending>> pending_;
};

}  // namespace

std::unique_ptr<Gradients> make_replicated_gradients(const ZeroContext& context, Parameters& parameters) {
  return std::make_unique<ReplicatedGradients>(context, parameters);
}

}  // namespace dsat::trainer
