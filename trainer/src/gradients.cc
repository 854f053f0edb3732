#include "gradients.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "partitioned_gradients.h"
#include "reducer.h"

namespace dsat::trainer {
namespace {

class ReplicatedGradients : public Gradients {
 public:
  ReplicatedGradients(const ZeroContext& c, Parameters& parameters)
      : c_(c), reducer_(c), flat_(at::zeros({c.layout.size()}, at::TensorOptions().dtype(c.dtype))) {
    for (size_t i = 0; i < c.layout.layers().size(); ++i) {
      const LayerSlot& layer = c.layout.layers()[i];
      for (size_t k = 0; k < layer.parameters.size(); ++k) {
        const ParameterSlot& slot = layer.parameters[k];
        parameters.layers()[i][k].mutable_grad() = flat_.narrow(0, slot.begin, slot.size).view(slot.spec.shape);
      }
    }
  }

  void begin_step() override { reducer_.begin_step(); }

  void after_micro_step(bool is_last) override {
    if (!is_last) return;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int64_t at = 0; at < flat_.numel(); at += c_.settings.reduce_bucket) {
      reduce(at, std::min(c_.settings.reduce_bucket, flat_.numel() - at), pending);
      if (!c_.settings.overlap_comm) wait_all(pending);
    }
    wait_all(pending);
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
  void reduce(int64_t begin, int64_t size, std::vector<std::unique_ptr<Pending>>& pending) {
    if (c_.settings.stage == 0 || !c_.settings.reduce_scatter) {
      return reducer_.start(flat_.narrow(0, begin, size), Reducer::kAllRanks, pending);
    }
    for (const Piece& piece : c_.partition.pieces(begin, size)) {
      reducer_.start(flat_.narrow(0, piece.begin, piece.size), piece.owner, pending);
    }
  }

  ZeroContext c_;
  Reducer reducer_;
  at::Tensor flat_;
};

}  // namespace

std::unique_ptr<Gradients> make_gradients(const ZeroContext& context, Parameters& parameters,
                                          std::function<void(size_t)> layer_done) {
  if (context.settings.stage < 2) return std::make_unique<ReplicatedGradients>(context, parameters);
  return std::make_unique<PartitionedGradients>(context, parameters, std::move(layer_done));
}

}  // namespace dsat::trainer
