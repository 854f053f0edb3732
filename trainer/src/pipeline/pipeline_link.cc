// Sends tensors as they are, after a header of fixed length: type, number of dimensions, and up to eight sizes.
// Both ends keep the shape of the first tensor: the sender to check the next ones, the receiver to make room for them.
#include "pipeline/pipeline_link.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

constexpr size_t kMostDimensions = 8;
// Elements of the header, which lies on the host.
constexpr int64_t kHeader = 2 + static_cast<int64_t>(kMostDimensions);  // type, number of dimensions, sizes

void finish(const std::unique_ptr<Pending>& pending) {
  if (pending) pending->wait();
}

// "Float [4, 6]"
std::string describe(const TensorShape& shape) {
  return fmt::format("{} [{}]", c10::toString(shape.dtype), fmt::join(shape.sizes, ", "));
}

// Only floating-point tensors have gradients to send back.
void check_sendable(const TensorShape& shape) {
  if (at::isFloatingType(shape.dtype) && shape.sizes.size() <= kMostDimensions) return;
  throw Error(fmt::format("a stage's output is {}; between stages a tensor is floating-point, of {} dimensions at most",
                          describe(shape), kMostDimensions));
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
    throw Error(
        fmt::format("a stage's output was {} and is now {}; micro batches of a pipeline have one shape: leave out "
                    "the last, shorter one",
                    describe(*shape_), describe(shape)));
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
