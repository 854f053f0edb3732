// One direction between two neighbouring stages.
//
// The first tensor is preceded by its type and shape, the others are not: they must be of the same. Sending ends when
// the receiver has taken the tensor.
// Threading: one rank, one thread. Errors: PeerLost; dsat::Error for a tensor that cannot be sent.
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
  // Borrows the group.
  PipelineSender(Comm& comm, int peer) : comm_(comm), peer_(peer) {}
  void send(const at::Tensor& tensor);

 private:
  Comm& comm_;
  int peer_;
  std::optional<TensorShape> shape_;
};

class PipelineReceiver {
 public:
  // Tensors come to lie on `device`.
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
