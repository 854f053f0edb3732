// The format safetensors: eight bytes with the length of a header, the header as JSON, then the tensors' bytes.
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>

#include "dsat/error.h"
#include "weights/output_file.h"
#include "weights/weight_reader.h"
#include "weights/weight_writer.h"

namespace dsat::trainer {
namespace {

constexpr size_t kAlignment = 8;
constexpr uint64_t kMostHeader = 100'000'000;  // bytes, as the format says

// A tensor with several names is there once for each: the format has no tensors that share bytes.
class SafetensorsWriter : public WeightWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<WeightSpec>& specs) : file_(path), specs_(specs) {
    Json header = {{"__metadata__", {{"format", "pt"}}}};
    uint64_t at = 0;
    for (const WeightSpec& spec : specs) {
      const auto place = [&](const std::string& name) {
        header[name] = {{"dtype", weight_type(name, spec.dtype).safetensors},
                        {"shape", spec.shape},
                        {"data_offsets", {at, at + spec.bytes()}}};
        at += spec.bytes();
      };
      place(spec.name);
      for (const std::string& alias : spec.aliases) place(alias);
    }
    std::string text = header.dump();
    text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
    const auto size = static_cast<uint64_t>(text.size());
    file_.write(&size, sizeof size);
    file_.write(text.data(), text.size());
  }
  void write(const at::Tensor& values) override {
    const WeightSpec& spec = specs_[next_++];
    for (size_t i = 0; i <= spec.aliases.size(); ++i) file_.write(values.data_ptr(), values.nbytes());
  }
  void finish() override { file_.commit(); }

 private:
  OutputFile file_;
  std::vector<WeightSpec> specs_;
  size_t next_ = 0;
};

class SafetensorsReader : public WeightReader {
 public:
  explicit SafetensorsReader(const std::string& path) : path_(path), file_(path, std::ios::binary | std::ios::ate) {
    const auto bytes = static_cast<uint64_t>(std::max<std::streamoff>(0, file_.tellg()));
    uint64_t size = 0;
    read_at(0, &size, sizeof size);
    if (size > kMostHeader || size + sizeof size > bytes) damaged("its header does not fit into it");
    std::string text(size, '\0');
    read_at(sizeof size, text.data(), text.size());
    const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object()) damaged("its header is no JSON object");
    try {
      for (const auto& [name, entry] : header.items()) {
        if (name != "__metadata__") add(name, entry, sizeof size + size, bytes);
      }
    } catch (const Json::exception&) {
      damaged("its header lacks a value or has one of another type");
    }
  }
  std::vector<WeightSpec> specs() const override {
    std::vector<WeightSpec> specs;
    for (const auto& [name, entry] : entries_) specs.push_back(entry.spec);
    return specs;
  }
  at::Tensor read(const std::string& name) override {
    const Entry& entry = entries_.at(name);
    at::Tensor values = at::empty(entry.spec.shape, at::TensorOptions().dtype(entry.spec.dtype));
    if (values.nbytes() > 0) read_at(entry.at, values.data_ptr(), values.nbytes());
    return values;
  }

 private:
  struct Entry {
    WeightSpec spec;
    uint64_t at;  // in the file
  };

  [[noreturn]] void damaged(const std::string& why) const {
    throw Error(fmt::format("{} is damaged or no safetensors: {}", path_, why));
  }
  void add(const std::string& name, const Json& entry, uint64_t data, uint64_t bytes) {
    const auto type = entry.at("dtype").get<std::string>();
    const WeightType* const known = type_of_safetensors(type);
    if (known == nullptr) throw Error(fmt::format("{}: {} is of type {}, which is not known here", path_, name, type));
    const WeightSpec spec{name, entry.at("shape").get<std::vector<int64_t>>(), known->dtype, {}};
    const auto begin = entry.at("data_offsets").at(0).get<uint64_t>(),
               end = entry.at("data_offsets").at(1).get<uint64_t>();
    const bool is_sound = std::all_of(spec.shape.begin(), spec.shape.end(), [](int64_t n) { return n >= 0; });
    if (!is_sound || end < begin || end > bytes - data || end - begin != spec.bytes()) {
      damaged(fmt::format("{} does not fit into it", name));
    }
    entries_[name] = {spec, data + begin};
  }
  void read_at(uint64_t at, void* to, size_t bytes) {
    file_.seekg(static_cast<std::streamoff>(at));
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes))) damaged("it is truncated");
  }

  std::string path_;
  std::ifstream file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace

std::unique_ptr<WeightWriter> write_safetensors(const std::string& path, const std::vector<WeightSpec>& specs) {
  return std::make_unique<SafetensorsWriter>(path, specs);
}

std::unique_ptr<WeightReader> read_safetensors(const std::string& path) {
  return std::make_unique<SafetensorsReader>(path);
}

}  // namespace dsat::trainer
