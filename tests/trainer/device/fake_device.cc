// The fake device: one memory mapped twice, an allocator on it, and a fallback for every operation that calls the CPU's
// kernel on the readable mapping. It takes the dispatch key of XPU.
#include "fake_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace dsat::trainer {
namespace {

constexpr auto kType = at::DeviceType::XPU;
constexpr size_t kBytes = size_t{1} << 30, kAlignment = 64;

// One stretch of memory, mapped twice: for the device's addresses without any right, and for its kernels.
class TwiceMappedMemory {
 public:
  TwiceMappedMemory() : free_{{0, kBytes}} {
    const int file = ::memfd_create("fake_device", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, kBytes) != 0) throw std::runtime_error("memfd_create");
    device_ = map(file, PROT_NONE);
    kernels_ = map(file, PROT_READ | PROT_WRITE);
    ::close(file);
  }

  void* take(size_t bytes) {
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      if (block->second < size) continue;
      const auto [offset, length] = *block;
      free_.erase(block);
      if (length > size) free_[offset + size] = length - size;
      taken_[offset] = size;
      in_use_ += static_cast<int64_t>(size);
      return device_ + offset;
    }
    throw std::runtime_error("the fake device is full");
  }
  void give_back(void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto taken = taken_.find(static_cast<size_t>(static_cast<char*>(address) - device_));
    auto [offset, size] = *taken;
    taken_.erase(taken);
    in_use_ -= static_cast<int64_t>(size);
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + size) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      std::prev(next)->second += size;
    } else {
      free_[offset] = size;
    }
  }
  // Where a kernel finds what has this address on the device.
  void* for_kernels(const void* address) const {
    return address == nullptr ? nullptr : kernels_ + (static_cast<const char*>(address) - device_);
  }
  int64_t in_use() const { return in_use_; }

 private:
  static char* map(int file, int rights) {
    void* const at = ::mmap(nullptr, kBytes, rights, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) throw std::runtime_error("mmap");
    return static_cast<char*>(at);
  }

  char *device_, *kernels_;
  std::mutex mutex_;  // guards the maps: offset and bytes
  std::map<size_t, size_t> free_, taken_;
  std::atomic<int64_t> in_use_{0};
};

TwiceMappedMemory& memory() {
  static TwiceMappedMemory* const instance = new TwiceMappedMemory;
  return *instance;
}

void release(void* address) {
  if (address != nullptr) memory().give_back(address);
}

c10::DataPtr allocate_on_device(size_t bytes) {
  void* const address = bytes == 0 ? nullptr : memory().take(bytes);
  return {address, address, &release, c10::Device(kType, 0)};
}

class Allocator : public c10::Allocator {
 public:
#if DSAT_LIBTORCH_MAJOR < 2
  c10::DataPtr allocate(size_t bytes) const override { return allocate_on_device(bytes); }
#else
  c10::DataPtr allocate(size_t bytes) override { return allocate_on_device(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(memory().for_kernels(to), memory().for_kernels(from), bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

Allocator& allocator() {
  static Allocator* const instance = new Allocator;
  return *instance;
}

std::atomic<int64_t> events{0};

// Its operations have ended when they return, so queues need no order; that they were put in one is counted.
class Guard : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return queue(current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return queue(1); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return queue(std::exchange(current, stream.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    *event = &events;
    ++events;
  }
  void block(void* event, const c10::Stream&) const override {
    if (event == &events) ++events;
  }
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}

 private:
  static c10::Stream queue(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, {kType, 0}, id); }
  static thread_local c10::StreamId current;
};
thread_local c10::StreamId Guard::current = 0;

// The same elements as a tensor of the host.
at::Tensor for_kernels(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  // A pointer that is nobody's: elements that have no memory now must not be read.
  void* const data = memory().for_kernels(tensor.data_ptr());
  return at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  for_kernels(to).copy_(for_kernels(from));
  return to;
}

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                 c10::optional<at::Device>, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator(), c10::DispatchKeySet(c10::DispatchKey::XPU),
                                   dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout>, c10::optional<at::Device>, c10::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator(), c10::DispatchKeySet(c10::DispatchKey::XPU),
                                           dtype.value_or(at::kFloat));
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      c10::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}
at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

at::Tensor on_device(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cpu()) return tensor;
  at::Tensor result = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kType));
  for_kernels(result).copy_(tensor);
  return result;
}

// LibTorch asks other devices than its own for these two.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const c10::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const c10::optional<at::Tensor> own_bias = bias ? c10::optional<at::Tensor>(for_kernels(*bias)) : c10::nullopt;
  return on_device(at::convolution(for_kernels(input), for_kernels(weight), own_bias, stride, padding, dilation,
                                   transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                                    const at::Tensor& weight, at::IntArrayRef stride,
                                                                    at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                    bool transposed, at::IntArrayRef output_padding,
                                                                    int64_t groups, std::array<bool, 3> wanted) {
  const std::vector<int64_t> bias_size = {weight.size(0)};
  const auto [of_input, of_weight, of_bias] =
      at::convolution_backward(for_kernels(gradient), for_kernels(input), for_kernels(weight), bias_size, stride,
                               padding, dilation, transposed, output_padding, groups, wanted);
  return {on_device(of_input), on_device(of_weight), on_device(of_bias)};
}

// The same, of which a kernel may make something of another size, in memory of the host.
at::Tensor resizable_for_kernels(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  const size_t before = static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
  c10::Storage storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes() - before,
                       c10::DataPtr(memory().for_kernels(tensor.data_ptr()), c10::Device(at::kCPU)),
                       c10::GetAllocator(at::kCPU), /*resizable=*/true);
  return at::empty({0}, tensor.options().device(at::kCPU)).set_(storage, 0, tensor.sizes(), tensor.strides());
}

// What a kernel has made of an argument that it changes.
void take_result(const at::Tensor& argument, const at::Tensor& computed) {
  if (argument.is_cpu()) return;
  c10::TensorImpl* const impl = argument.unsafeGetTensorImpl();
  if (computed.data_ptr() != memory().for_kernels(argument.data_ptr())) {
    impl->set_storage_keep_dtype(on_device(computed).storage());
    impl->set_storage_offset(0);
  }
  if (argument.sizes() != computed.sizes()) impl->set_sizes_and_strides(computed.sizes(), computed.strides());
}

// What came in for an argument that the operation changes is what goes out for it.
const c10::IValue* argument_of(const c10::Argument& result, const c10::FunctionSchema& schema,
                               const std::vector<c10::IValue>& given) {
  if (result.alias_info() == nullptr || !result.alias_info()->isWrite()) return nullptr;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && *alias == *result.alias_info()) return &given[i];
  }
  return nullptr;
}

// Any other operation: by the CPU's kernel on the memory of the device.
void compute(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size(), first = stack->size() - count;
  const std::vector<c10::IValue> given(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = resizable_for_kernels(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(for_kernels(tensor));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<c10::optional<at::Tensor>> list;
      for (const auto& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor ? c10::optional<at::Tensor>(for_kernels(*tensor)) : c10::nullopt);
      }
      value = list;
    } else if (value.isDevice()) {
      value = c10::Device(at::kCPU);
    }
  }
  // A kernel may return references to what it was given, which is off the stack by then.
  const std::vector<c10::IValue> held(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const size_t results = schema.returns().size();
  for (size_t i = 0; i < results; ++i) {
    c10::IValue& value = (*stack)[stack->size() - results + i];
    if (const c10::IValue* const argument = argument_of(schema.returns()[i], schema, given)) {
      if (argument->isTensor()) take_result(argument->toTensor(), value.toTensor());
      value = *argument;
    } else if (value.isTensor()) {
      value = on_device(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(on_device(tensor));
      value = list;
    }
  }
}

TORCH_LIBRARY_IMPL(aten, XPU, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("as_strided", TORCH_FN(as_strided));
  library.impl("view", TORCH_FN(view));
  library.impl("_reshape_alias", TORCH_FN(reshape_alias));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  library.impl("copy_", TORCH_FN(copy));
  library.impl("convolution_overrideable", TORCH_FN(convolution));
  library.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
}
TORCH_LIBRARY_IMPL(_, XPU, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>()); }

C10_REGISTER_GUARD_IMPL(XPU, Guard);

}  // namespace

at::Device open_fake_device() {
  c10::SetAllocator(kType, &allocator());
  return {kType, 0};
}

int64_t fake_device_bytes_in_use() { return memory().in_use(); }
int64_t fake_device_events() { return events; }

}  // namespace dsat::trainer
