// A stack machine for the opcodes of protocols 2 to 5 that torch.save emits. Objects are kept as trees.
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "dsat/error.h"
#include "weights/torch_pickle.h"

namespace dsat::trainer {
namespace {

struct Node;
using NodePtr = std::shared_ptr<Node>;

struct Node {
  enum class Kind { other, mark, text, integer, sequence, dict, global, storage, tensor };
  Kind kind = Kind::other;
  std::string text;            // text; the dotted name of a global
  int64_t integer = 0;         // also of a bool
  std::vector<NodePtr> items;  // a sequence's; a dict's keys and values in turn
  PickledTensor tensor;        // a storage's too: spec.dtype, key, storage_numel
};

NodePtr node(Node::Kind kind) {
  auto made = std::make_shared<Node>();
  made->kind = kind;
  return made;
}

[[noreturn]] void refuse(const std::string& why) { throw Error("its pickle is damaged: " + why); }

class Machine {
 public:
  explicit Machine(std::string_view pickle) : pickle_(pickle) {}

  NodePtr run() {
    while (true) {
      const char code = static_cast<char>(integer(1));
      if (code == '.') return pop();
      step(code);
    }
  }

 private:
  std::string_view bytes(size_t count) {
    if (count > pickle_.size() - at_) refuse("it ends too early");
    at_ += count;
    return pickle_.substr(at_ - count, count);
  }
  uint64_t integer(int size) {
    uint64_t value = 0;
    const std::string_view text = bytes(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    return value;
  }
  std::string line() {
    const size_t end = pickle_.find('\n', at_);
    if (end == std::string_view::npos) refuse("it ends too early");
    const std::string text(pickle_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }

  void push(NodePtr made) { stack_.push_back(std::move(made)); }
  NodePtr pop() {
    if (stack_.empty()) refuse("its stack is empty");
    NodePtr top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }
  NodePtr& top() {
    if (stack_.empty()) refuse("its stack is empty");
    return stack_.back();
  }
  std::vector<NodePtr> pop_to_mark() {
    std::vector<NodePtr> items;
    while (true) {
      NodePtr one = pop();
      if (one->kind == Node::Kind::mark) break;
      items.insert(items.begin(), std::move(one));
    }
    return items;
  }
  std::vector<NodePtr> pop_some(size_t count) {
    std::vector<NodePtr> items(count);
    while (count-- > 0) items[count] = pop();
    return items;
  }

  void push_text(uint64_t size) {
    NodePtr made = node(Node::Kind::text);
    made->text = std::string(bytes(size));
    push(std::move(made));
  }
  void push_integer(int64_t value) {
    NodePtr made = node(Node::Kind::integer);
    made->integer = value;
    push(std::move(made));
  }
  void push_sequence(std::vector<NodePtr> items) {
    NodePtr made = node(Node::Kind::sequence);
    made->items = std::move(items);
    push(std::move(made));
  }
  void push_global(const std::string& name) {
    NodePtr made = node(Node::Kind::global);
    made->text = name;
    push(std::move(made));
  }
  void append(std::vector<NodePtr> items) {
    for (NodePtr& item : items) top()->items.push_back(std::move(item));
  }
  void recall(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) refuse("it recalls what it never kept");
    push(found->second);
  }

  void step(char code);
  void reduce();
  void push_storage();
  bool step_of_protocol_4(char code);

  std::string_view pickle_;
  size_t at_ = 0;
  std::vector<NodePtr> stack_;
  std::map<uint64_t, NodePtr> memo_;
};

void Machine::step(char code) {
  switch (code) {
    case '\x80':
      integer(1);
      return;
    case 'c': {
      const std::string module = line();
      return push_global(module + "." + line());
    }
    case 'q':
      memo_[integer(1)] = top();
      return;
    case 'r':
      memo_[integer(4)] = top();
      return;
    case 'h':
      return recall(integer(1));
    case 'j':
      return recall(integer(4));
    case '(':
      return push(node(Node::Kind::mark));
    case ')':
    case ']':
      return push_sequence({});
    case '}':
      return push(node(Node::Kind::dict));
    case 't':
    case 'l':
      return push_sequence(pop_to_mark());
    case '\x85':
      return push_sequence(pop_some(1));
    case '\x86':
      return push_sequence(pop_some(2));
    case '\x87':
      return push_sequence(pop_some(3));
    case 'X':
      return push_text(integer(4));
    case 'U':
      return push_text(integer(1));
    case 'K':
      return push_integer(static_cast<int64_t>(integer(1)));
    case 'M':
      return push_integer(static_cast<int64_t>(integer(2)));
    case 'J':
      return push_integer(static_cast<int32_t>(integer(4)));
    case '\x8a': {
      const auto size = static_cast<int>(integer(1));
      if (size > 8) refuse("it has a number of more than 64 bits");
      const uint64_t value = integer(size);
      const int shift = 64 - 8 * size;  // the sign
      return push_integer(size == 0 ? 0 : static_cast<int64_t>(value << shift) >> shift);
    }
    case 'G':
      bytes(8);
      return push(node(Node::Kind::other));
    case 'N':
      return push(node(Node::Kind::other));
    case '\x88':
      return push_integer(1);
    case '\x89':
      return push_integer(0);
    case 'a':
    case 's':
      return append(code == 'a' ? pop_some(1) : pop_some(2));
    case 'e':
    case 'u':
      return append(pop_to_mark());
    case 'b':
      pop();
      return;  // attributes of an object, such as a state dict's _metadata
    case 'R':
    case '\x81':
      return reduce();
    case 'Q':
      return push_storage();
    case '0':
      pop();
      return;
    default:
      if (!step_of_protocol_4(code)) refuse(fmt::format("it has the unknown opcode {:#x}", static_cast<uint8_t>(code)));
  }
}

bool Machine::step_of_protocol_4(char code) {
  switch (code) {
    case '\x8c':
      push_text(integer(1));
      return true;
    case '\x94':
      memo_[memo_.size()] = top();
      return true;
    case '\x95':
      integer(8);
      return true;
    case '\x93': {
      const std::vector<NodePtr> names = pop_some(2);
      push_global(names[0]->text + "." + names[1]->text);
      return true;
    }
    default:
      return false;
  }
}

std::vector<int64_t> integers(const Node& sequence) {
  std::vector<int64_t> values;
  for (const NodePtr& item : sequence.items) values.push_back(item->integer);
  return values;
}

// ("storage", torch.FloatStorage, KEY, device, elements)
void Machine::push_storage() {
  const NodePtr id = pop();
  if (id->items.size() != 5 || id->items[1]->kind != Node::Kind::global) refuse("it has a storage of another form");
  const std::string& type = id->items[1]->text;
  const WeightType* const known = type_of_torch_storage(type.substr(type.rfind('.') + 1));
  if (known == nullptr) refuse("it has a storage of the type " + type + ", which is not known here");
  NodePtr made = node(Node::Kind::storage);
  made->tensor.spec.dtype = known->dtype;
  made->tensor.key = id->items[2]->text;
  made->tensor.storage_numel = id->items[4]->integer;
  push(std::move(made));
}

// A call: only the functions that torch.save uses for tensors have a result.
void Machine::reduce() {
  const std::vector<NodePtr> call = pop_some(2);
  const std::string& function = call[0]->text;
  const std::vector<NodePtr>& arguments = call[1]->items;
  if (function == "collections.OrderedDict") return push(node(Node::Kind::dict));
  if (function == "torch._utils._rebuild_parameter" && !arguments.empty()) return push(arguments[0]);
  if (function != "torch._utils._rebuild_tensor_v2") return push(node(Node::Kind::other));
  if (arguments.size() < 4 || arguments[0]->kind != Node::Kind::storage) refuse("it has a tensor of another form");
  NodePtr made = node(Node::Kind::tensor);
  made->tensor = arguments[0]->tensor;
  made->tensor.offset = arguments[1]->integer;
  made->tensor.spec.shape = integers(*arguments[2]);
  made->tensor.stride = integers(*arguments[3]);
  if (made->tensor.stride.size() != made->tensor.spec.shape.size()) refuse("it has a tensor of another form");
  push(std::move(made));
}

// nullptr: there is none of that name.
const Node* inner_dict(const Node& dict, const char* name) {
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    if (dict.items[i]->text == name && dict.items[i + 1]->kind == Node::Kind::dict) return dict.items[i + 1].get();
  }
  return nullptr;
}

}  // namespace

std::vector<PickledTensor> unpickle_state_dict(std::string_view pickle) {
  const NodePtr root = Machine(pickle).run();
  std::vector<PickledTensor> tensors;
  const auto add = [&](const std::string& name, const Node& value) {
    if (value.kind != Node::Kind::tensor) return;
    tensors.push_back(value.tensor);
    tensors.back().spec.name = name;
  };
  if (root->kind == Node::Kind::sequence) {
    for (size_t i = 0; i < root->items.size(); ++i) add(std::to_string(i), *root->items[i]);
    return tensors;
  }
  if (root->kind != Node::Kind::dict) throw Error("it holds neither a dict nor a tuple of tensors");
  const Node* dict = root.get();
  for (const char* const name : {"state_dict", "model", "module"}) {
    if (const Node* inner = inner_dict(*root, name)) {
      dict = inner;
      break;
    }
  }
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) add(dict->items[i]->text, *dict->items[i + 1]);
  return tensors;
}

}  // namespace dsat::trainer
