// The zip archive of torch.save, through LibTorch's own reader and writer of archives: a pickle, and a record for the
// bytes of each storage.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>

#include "dsat/error.h"
#include "weights/output_file.h"
#include "weights/torch_pickle.h"
#include "weights/weight_reader.h"
#include "weights/weight_writer.h"

namespace dsat::trainer {
namespace {

std::vector<int64_t> contiguous_stride(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * std::max<int64_t>(1, shape[i]);
  return stride;
}

class TorchFileWriter : public WeightWriter {
 public:
  TorchFileWriter(const std::string& path, const std::vector<WeightSpec>& specs) : file_(path) {
    std::vector<PickledTensor> tensors;
    for (const WeightSpec& spec : specs) {
      tensors.push_back({spec, std::to_string(tensors.size()), spec.numel(), 0, contiguous_stride(spec.shape)});
    }
    const std::string pickle = pickle_state_dict(tensors);
    // LibTorch's archive must see success only: its destructor throws otherwise.
    archive_.emplace([this](const void* data, size_t bytes) {
      if (failure_ || is_abandoned_) return bytes;
      try {
        file_.write(data, bytes);
      } catch (...) {
        failure_ = std::current_exception();
      }
      return bytes;
    });
    record("data.pkl", pickle.data(), pickle.size());
  }
  ~TorchFileWriter() override { is_abandoned_ = true; }

  void write(const at::Tensor& values) override {
    record("data/" + std::to_string(next_++), values.data_ptr(), values.nbytes());
  }
  void finish() override {
    archive_->writeEndOfFile();
    if (failure_) std::rethrow_exception(failure_);
    file_.commit();
  }

 private:
  void record(const std::string& name, const void* data, size_t bytes) {
    archive_->writeRecord(name, data, bytes);
    if (failure_) std::rethrow_exception(failure_);
  }

  OutputFile file_;
  std::exception_ptr failure_;
  bool is_abandoned_ = false;
  std::optional<caffe2::serialize::PyTorchStreamWriter> archive_;
  size_t next_ = 0;
};

class TorchFileReader : public WeightReader {
 public:
  explicit TorchFileReader(const std::string& path) : path_(path) {
    in_file([&] {
      archive_.emplace(path);
      if (!archive_->hasRecord("data.pkl") || archive_->hasRecord("constants.pkl")) {
        throw Error("it is no state dict; a TorchScript module has its own weights (--torchscript)");
      }
      const auto [data, size] = archive_->getRecord("data.pkl");
      for (PickledTensor& tensor : unpickle_state_dict({static_cast<const char*>(data.get()), size})) {
        const std::string name = tensor.spec.name;
        if (tensors_.count(name) == 0) order_.push_back(name);
        tensors_[name] = std::move(tensor);
      }
    });
  }
  std::vector<WeightSpec> specs() const override {
    std::vector<WeightSpec> specs;
    for (const std::string& name : order_) specs.push_back(tensors_.at(name).spec);
    return specs;
  }
  at::Tensor read(const std::string& name) override {
    const PickledTensor& tensor = tensors_.at(name);
    at::Tensor values = at::empty(tensor.spec.shape, at::TensorOptions().dtype(tensor.spec.dtype));
    in_file([&] {
      auto [data, bytes] = archive_->getRecord("data/" + tensor.key);
      check_extent(tensor, bytes);
      if (values.numel() == 0) return;
      char* const first = static_cast<char*>(data.get()) + tensor.offset * static_cast<int64_t>(values.element_size());
      values.copy_(at::from_blob(first, tensor.spec.shape, tensor.stride, values.options()));
    });
    return values;
  }

 private:
  void check_extent(const PickledTensor& tensor, size_t bytes) const {
    int64_t last = tensor.offset;
    bool is_sound = tensor.offset >= 0, is_empty = false;
    for (size_t i = 0; i < tensor.stride.size(); ++i) {
      is_sound = is_sound && tensor.stride[i] >= 0 && tensor.spec.shape[i] >= 0;
      is_empty = is_empty || tensor.spec.shape[i] == 0;
      last += (tensor.spec.shape[i] - 1) * tensor.stride[i];
    }
    const auto elements = static_cast<int64_t>(bytes / c10::elementSize(tensor.spec.dtype));
    if (!is_sound || (!is_empty && last >= elements)) throw Error(tensor.spec.name + " does not fit into its storage");
  }
  // LibTorch's texts and ours get the file's name.
  template <typename Call>
  void in_file(Call call) const {
    try {
      call();
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", path_, error.what()));
    } catch (const c10::Error&) {
      throw Error(fmt::format("{} is damaged or no file of torch.save", path_));
    }
  }

  std::string path_;
  std::optional<caffe2::serialize::PyTorchStreamReader> archive_;
  std::map<std::string, PickledTensor> tensors_;
  std::vector<std::string> order_;
};

}  // namespace

std::unique_ptr<WeightWriter> write_torch_file(const std::string& path, const std::vector<WeightSpec>& specs) {
  return std::make_unique<TorchFileWriter>(path, specs);
}

std::unique_ptr<WeightReader> read_torch_file(const std::string& path) {
  return std::make_unique<TorchFileReader>(path);
}

}  // namespace dsat::trainer
