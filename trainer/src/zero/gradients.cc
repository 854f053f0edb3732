#include "zero/gradients.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "zero/gradient_hooks.h"
#include "zero/partitioned_gradients.h"
#include "zero/reducer.h"

namespace dsat::trainer {
namespace {

// Stages 0 and 1.
class ReplicatedGradients : public Gradients {
 public:
  ReplicatedGradients(const ZeroContext& c, Parameters& parameters)
      : c_(c), reducer_(c), flat_(at::zeros({c.layout.size()}, c.options())) {
    for (size_t i = 0; i < c.layout.layers().size(); ++i) {
      const LayerSlot& layer = c.layout.layers()[i];
      for (size_t k = 0; k < layer.parameters.size(); ++k) {
        const ParameterSlot& slot = layer.parameters[k];
        parameters.layers()[i][k].mutable_grad() = flat_.narrow(0, slot.begin, slot.size).view(slot.spec.shape);
      }
    }
    if (c.comm.size() > 1 && c.settings.overlap_comm) {
      hooks_ = std::make_unique<GradientHooks>(c.layout, parameters.layers(), nullptr,
                                               [this](GradientEntry& entry) { arrived(entry); });
    }
  }

  void begin_step() override { reducer_.begin_step(); }

  void begin_backward(bool is_last) override {
    is_last_ = is_last;
    if (hooks_ == nullptr) return;
    hooks_->begin_backward();
    missing_.assign(static_cast<size_t>(num_buckets()), 0);
    for (const GradientEntry& entry : hooks_->entries()) count(*entry.slot, +1);
    next_ = 0;
  }

  void end_backward() override {
    if (is_last_) {
      while (next_ < num_buckets()) reduce(next_++);
      wait_all(pending_);
    }
    has_seen_a_backward_ = true;
    next_ = 0;
  }

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
  // Bucket b ends b buckets before the end of the flat array.
  int64_t num_buckets() const { return (flat_.numel() + c_.settings.reduce_bucket - 1) / c_.settings.reduce_bucket; }
  int64_t bucket_of(int64_t element) const { return (flat_.numel() - 1 - element) / c_.settings.reduce_bucket; }
  void count(const ParameterSlot& slot, int by) {
    if (slot.size == 0) return;
    for (int64_t b = bucket_of(slot.begin + slot.size - 1); b <= bucket_of(slot.begin); ++b) {
      missing_[static_cast<size_t>(b)] += by;
    }
  }

  void arrived(GradientEntry& entry) {
    if (!is_last_) return;
    if (entry.arrived > entry.expected && entry.slot->size > 0 &&
        bucket_of(entry.slot->begin + entry.slot->size - 1) < next_) {
      throw Error(entry.slot->spec.name +
                  " got another gradient after its sum had begun: it is used more often than before; set overlap_comm "
                  "to false");
    }
    if (entry.arrived != entry.expected) return;
    count(*entry.slot, -1);
    if (!has_seen_a_backward_) return;  // more pieces of a gradient may come
    while (next_ < num_buckets() && missing_[static_cast<size_t>(next_)] == 0) reduce(next_++);
  }

  void reduce(int64_t bucket) {
    const int64_t end = flat_.numel() - bucket * c_.settings.reduce_bucket;
    const int64_t begin = std::max<int64_t>(0, end - c_.settings.reduce_bucket);
    std::vector<Summand> summands;
    if (c_.settings.stage == 0 || !c_.settings.reduce_scatter) {
      summands.push_back({flat_.narrow(0, begin, end - begin)});
    } else {
      for (const Piece& piece : c_.partition.pieces(begin, end - begin)) {
        summands.push_back({flat_.narrow(0, piece.begin, piece.size), piece.owner});
      }
    }
    pending_.push_back(reducer_.start("the sum of gradient bucket " + std::to_string(bucket), std::move(summands)));
    if (!c_.settings.overlap_comm) wait_all(pending_);
  }

  ZeroContext c_;
  Reducer reducer_;
  at::Tensor flat_;
  std::unique_ptr<GradientHooks> hooks_;  // with overlap_comm between ranks
  std::vector<int> missing_;              // parameters per bucket whose gradient has not arrived
  int64_t next_ = 0;                      // bucket to be reduced
  bool is_last_ = false;
  bool has_seen_a_backward_ = false;
  std::vector<std::unique_ptr<Pending>> pending_;
};

}  // namespace

std::unique_ptr<Gradients> make_gradients(const ZeroContext& context, Parameters& parameters,
                                          std::function<void(size_t)> group_done) {
  if (context.settings.stage < 2) return std::make_unique<ReplicatedGradients>(context, parameters);
  return std::make_unique<PartitionedGradients>(context, parameters, std::move(group_done));
}

}  // namespace dsat::trainer
