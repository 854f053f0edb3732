// Makes a model of which no rank ever has all parameters at once, for ZeRO stage 3.
//
//   auto net = in_shards(world, [] { return std::make_shared<Net>(); });
//   auto engine = initialize(net, world, world.config());
//
// A parameter is whole from the first operation on it (in LibTorch's layers its random initialization) to the next
// operation on something else; then each rank keeps its part of rank 0's values. Where a later operation of the
// construction reads or writes it, it is whole again for that operation. So the peak is the parts and a few of the
// largest parameters. A parameter that no operation has touched, or of less than 16 KiB, stays whole until
// initialize(), as do buffers.
// After in_shards() and before initialize(), reading such a parameter ends the program with a line. On a CUDA device
// move the model there by initialize(), not before it.
//
// Threading: one rank, one thread. Collective: ranks make the same model in the same order. A pointer to a parameter's
// values (data_ptr(), accessor()) is good until the next operation. Errors: what `make` throws; PeerLost.
#ifndef DSAT_TRAINER_IN_SHARDS_H_
#define DSAT_TRAINER_IN_SHARDS_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "dsat/trainer/world.h"

namespace dsat::trainer {

// One at a time.
class ShardedConstruction {
 public:
  explicit ShardedConstruction(Comm& comm);
  ~ShardedConstruction();
  ShardedConstruction(const ShardedConstruction&) = delete;
  ShardedConstruction& operator=(const ShardedConstruction&) = delete;

  // Cuts what is still whole. Throws what an operation could not be given.
  void finish();
  // The same for a file that was read: what is no parameter among these becomes whole again.
  void finish(const std::vector<at::Tensor>& parameters);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

template <class Make>
auto in_shards(World& world, const Make& make) {
  ShardedConstruction construction(world.comm());
  auto model = make();
  construction.finish();
  return model;
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_IN_SHARDS_H_
