// Writes protocol 2, with the few objects that torch.load(weights_only=True) takes.
#include <climits>

#include "weights/torch_pickle.h"

namespace dsat::trainer {
namespace {

class Pickle {
 public:
  Pickle() { text_ = "\x80\x02"; }
  void op(char code) { text_ += code; }
  void name(const std::string& text) {
    op('X');
    little_endian(text.size(), 4);
    text_ += text;
  }
  void integer(int64_t value) {
    if (value >= 0 && value <= INT_MAX) {
      op('J');
      little_endian(static_cast<uint64_t>(value), 4);
    } else {
      op('\x8a');
      op('\x08');
      little_endian(static_cast<uint64_t>(value), 8);
    }
  }
  void global(const std::string& module, const std::string& object) { text_ += "c" + module + "\n" + object + "\n"; }
  void tuple(const std::vector<int64_t>& values) {
    op('(');
    for (const int64_t value : values) integer(value);
    op('t');
  }
  void tensor(const PickledTensor& tensor) {
    global("torch._utils", "_rebuild_tensor_v2");
    op('(');
    op('(');
    name("storage");
    global("torch", weight_type(tensor.spec.name, tensor.spec.dtype).torch_storage);
    name(tensor.key);
    name("cpu");
    integer(tensor.storage_numel);
    op('t');
    op('Q');
    integer(tensor.offset);
    tuple(tensor.spec.shape);
    tuple(tensor.stride);
    op('\x89');  // needs no gradient
    global("collections", "OrderedDict");
    text_ += ")R";  // no hooks
    op('t');
    op('R');
  }
  std::string take() { return std::move(text_); }

 private:
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  std::string text_;
};

}  // namespace

std::string pickle_state_dict(const std::vector<PickledTensor>& tensors) {
  Pickle pickle;
  pickle.op('}');
  pickle.op('(');
  for (const PickledTensor& tensor : tensors) {
    std::vector<std::string> names = tensor.spec.aliases;
    names.insert(names.begin(), tensor.spec.name);
    for (const std::string& name : names) {
      pickle.name(name);
      pickle.tensor(tensor);
    }
  }
  pickle.op('u');
  pickle.op('.');
  return pickle.take();
}

}  // namespace dsat::trainer
