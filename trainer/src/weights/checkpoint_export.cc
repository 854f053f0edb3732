// Reads each parameter's ranges out of the ranks' files and writes it, one after the other.
#include "weights/checkpoint_export.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "dsat/base/files.h"
#include "dsat/error.h"
#include "files/checkpoint_dir.h"
#include "files/checkpoint_shard.h"
#include "weights/weight_writer.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

std::string named_in(const fs::path& file) {
  const std::string text = read_file(file);
  if (file.extension() != ".json") return text.substr(0, text.find_last_not_of(" \n") + 1);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json name = json.is_object() ? json.value("checkpoint", Json()) : Json();
  return name.is_string() ? name.get<std::string>() : "";
}

// A trial's checkpoint has a folder for each engine.
fs::path found(const fs::path& folder) {
  if (fs::exists(folder / kCheckpointDescription)) return folder;
  if (fs::exists(folder / "latest.json")) return found(folder / named_in(folder / "latest.json"));
  if (fs::exists(folder / "engine1")) {
    throw Error(
        fmt::format("{} has several engines; export one of them: {}", folder.string(), (folder / "engine0").string()));
  }
  if (fs::exists(folder / kLatestCheckpoint)) return folder / named_in(folder / kLatestCheckpoint);
  throw Error(fmt::format("{} is no checkpoint of dsat-trial: it has neither {} nor {}", folder.string(),
                          kCheckpointDescription, kLatestCheckpoint));
}

class Checkpoint {
 public:
  explicit Checkpoint(const fs::path& folder) : folder_(folder) {
    const fs::path file = folder / kCheckpointDescription;
    description_ = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
    if (!description_.is_object()) throw Error(fmt::format("{} is truncated or no JSON object", file.string()));
    const int ranks = description_.at("world_size"), stages = description_.at("pipeline_stages");
    if (stages < 1 || ranks < 1 || ranks % stages != 0) {
      throw Error(fmt::format("{} is damaged: {} ranks in {} stages", file.string(), ranks, stages));
    }
    const int of_a_stage = ranks / stages;
    for (int i = 0; i < ranks; ++i) {
      const std::string name = checkpoint_shard_name(i / of_a_stage, stages, i % of_a_stage);
      shards_.push_back(std::make_unique<ShardReader>((folder / name).string()));
    }
    const Json aliases = description_.value("aliases", Json::object());
    const auto spec_of = [&](const Json& one, at::ScalarType dtype) {
      WeightSpec spec{one.at("name"), one.at("shape"), dtype, {}};
      for (const auto& [alias, name] : aliases.items()) {
        if (name == spec.name) spec.aliases.push_back(alias);
      }
      return spec;
    };
    for (const Json& one : description_.at("parameters")) specs_.push_back(spec_of(one, at::kFloat));
    parameters_ = specs_.size();
    for (const Json& one : description_.value("buffers", Json::array())) {
      const WeightType* const type = type_of_safetensors(one.at("dtype").get<std::string>());
      if (type == nullptr) throw Error(fmt::format("{}: a buffer is of an unknown type", file.string()));
      specs_.push_back(spec_of(one, type->dtype));
    }
  }

  const std::vector<WeightSpec>& specs() const { return specs_; }
  bool lacks_buffers() const { return !description_.contains("buffers"); }

  at::Tensor read(size_t i) const {
    const at::Tensor values = at::empty(specs_[i].shape, at::TensorOptions().dtype(specs_[i].dtype));
    i < parameters_ ? read_parameter(i, values) : read_buffer(specs_[i], values);
    return values;
  }

 private:
  void read_parameter(size_t i, const at::Tensor& values) const {
    int64_t read = 0;
    for (const auto& shard : shards_) {
      for (const OwnedRange& range : shard->ranges()) {
        if (range.parameter != static_cast<int64_t>(i)) continue;
        if (range.begin < 0 || range.size < 0 || range.begin + range.size > values.numel()) incomplete(specs_[i]);
        shard->read("master", range.shard_begin, range.size, values.data_ptr<float>() + range.begin);
        read += range.size;
      }
    }
    if (read != values.numel()) incomplete(specs_[i]);
  }
  [[noreturn]] void incomplete(const WeightSpec& spec) const {
    throw Error(fmt::format("{} does not hold all of {}", folder_.string(), spec.name));
  }
  void read_buffer(const WeightSpec& spec, const at::Tensor& values) const {
    const Blob blob{checkpoint_buffer_name(spec.name), values.data_ptr(), values.nbytes()};
    for (const auto& shard : shards_) {
      if (shard->has_blob(blob.name)) return shard->read(blob);
    }
    incomplete(spec);
  }

  fs::path folder_;
  Json description_;
  std::vector<std::unique_ptr<ShardReader>> shards_;
  std::vector<WeightSpec> specs_;  // parameters as the shards number them, then buffers
  size_t parameters_ = 0;
};

}  // namespace

ExportedCheckpoint export_checkpoint(const std::string& path, const std::string& out) {
  check_weights_name(out);
  const fs::path folder = found(path);
  try {
    const Checkpoint checkpoint(folder);
    const std::unique_ptr<WeightWriter> writer = open_weight_writer(out, checkpoint.specs());
    for (size_t i = 0; i < checkpoint.specs().size(); ++i) writer->write(checkpoint.read(i));
    writer->finish();
    return {folder.string(), checkpoint.specs().size(), checkpoint.lacks_buffers()};
  } catch (const Json::exception&) {
    throw Error(fmt::format("{} is damaged: it lacks a value or has one of another type",
                            (folder / kCheckpointDescription).string()));
  }
}

}  // namespace dsat::trainer
