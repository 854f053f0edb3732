#include "pipeline/pipeline_link.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

constexpr size_t kMostDimensions = 8;
constexpr int64_t kHeader = 2 + static_cast<int64_t>(kMostDimensions);  // type, number of dimensions, sizes

void finish(const std::unique_ptr<Pending>& pending) {
  if (pending) pending->wait();
}

std::string describe(const TensorShape& shape) {
  std::string text = std::string(c10::toString(shape.dtype)) + " [";
  for (size_t i = 0; i < shape.sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape.sizes[i]);
  return text + "]";
}

void check_sendable(const TensorShape& shape) {
  if (at::isFloatingType(shape.dtype) && shape.sizes.size() <= kMostDimensions) return;
  throw Error("a stage's output is " + describe(shape) +
              "; between stages a tensor is floating-point, of 8 dimensions at most");
}

}  // namespace

void PipelineSender::send(const at::Tensor& tensor) {
  const TensorShape shape{tensor.scalar_type(), tensor.sizes().vec()};
  if (!shape_) {
    check_sendable(shape);
    const at::Tensor header = at::empty({kHeader}, at::TensorOptions().dtype(at::kLong)).zero_();
    auto* const fields = header.data_ptr<int64_t>();
    fields[0] = static_cast<int64_t>(shape.dtype);
    fields[1] = static_cast<int64_t>(shape.sizes.size());
    std::copy(shape.sizes.begin(), shape.sizes.end(), fields + 2);
    finish(comm_.send(header, peer_));
    shape_ = shape;
  }
  if (!(*shape_ == shape)) {
    throw Error("a stage's output was " + describe(*shape_) + " and is now " + describe(shape) +
                "; micro batches of a pipeline have one shape: leave out the last, shorter one");
  }
  if (tensor.numel() > 0) finish(comm_.send(tensor.contiguous(), peer_));
}

at::Tensor PipelineReceiver::receive() {
  if (!shape_) {
    const at::Tensor header = at::empty({kHeader}, at::TensorOptions().dtype(at::kLong));
    finish(comm_.recv(header, peer_));
    const auto* const fields = header.data_ptr<int64_t>();
    shape_ = TensorShape{static_cast<at::ScalarType>(fields[0]), {fields + 2, fields + 2 + fields[1]}};
  }
  at::Tensor tensor = at::empty(shape_->sizes, at::TensorOptions().dtype(shape_->dtype).device(device_));
  if (tensor.numel() > 0) finish(comm_.recv(tensor, peer_));
  return tensor;
}

}  // namespace dsat::trainer
