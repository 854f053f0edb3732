// One direction between two neighbouring stages of a pipeline: a sender on one rank, a receiver on the other.
//
// A header with type and shape goes before the first tensor only: all later ones must have the same type and shape.
// send() returns when the receiver has taken the tensor, so nothing piles up between stages. Ownership: borrows the
// group. Threading: the compute thread of each rank. Errors: PeerLost; dsat::Error for a tensor that cannot be sent.
#ifndef DSAT_TRAINER_PIPELINE_PIPELINE_LINK_H_
#define DSAT_TRAINER_PIPELINE_PIPELINE_LINK_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "dsat/trainer/comm.h"

namespace dsat::trainer {

struct TensorShape {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;

  bool operator==(const TensorShape& other) const { return dtype == other.dtype && sizes == other.sizes; }
};

class PipelineSender {
 public:
  PipelineSender(Comm& comm, int peer) : comm_(comm), peer_(peer) {}
  void send(const at::Tensor& tensor);

 private:
  Comm& comm_;
  int peer_;
  std::optional<TensorShape> shape_;
};

class PipelineReceiver {
 public:
  // Received tensors lie on `device`.
  PipelineReceiver(Comm& comm, int peer, at::Device device) : comm_(comm), peer_(peer), device_(device) {}
  at::Tensor receive();

 private:
  Comm& comm_;
  int peer_;
  at::Device device_;
  std::optional<TensorShape> shape_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_PIPELINE_LINK_H_
