#include "checkpoint_files.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>

#include "durable_file.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLatest = "latest";
constexpr const char* kDescription = "checkpoint.json";

std::string shard_name(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank_%05d.ckpt", rank);
  return name;
}

// Runs `step` on this rank and goes on only if it succeeded on all.
void together(Comm& comm, const std::function<void()>& step) {
  std::exception_ptr mine;
  try {
    step();
  } catch (const Error&) {
    mine = std::current_exception();
  } catch (const Json::exception& error) {
    mine = std::make_exception_ptr(Error(std::string("the checkpoint is damaged: ") + error.what()));
  } catch (const fs::filesystem_error& error) {
    mine = std::make_exception_ptr(Error(DSAT_INTERNAL, error.what()));
  }
  const double failures = sum_over_ranks(comm, {mine ? 1.0 : 0.0})[0];
  if (mine) std::rethrow_exception(mine);
  if (failures > 0) throw PeerLost("another rank failed at the checkpoint");
}

void check_tag(const std::string& tag) {
  const bool is_name = !tag.empty() && tag[0] != '.' && tag.find('/') == std::string::npos && tag != kLatest;
  if (!is_name) throw Error("the checkpoint's tag \"" + tag + "\" is no name for a folder");
}

// Parameters by name: how a stage groups and orders them is its own matter.
struct ParameterNames {
  explicit ParameterNames(const Layout& layout) {
    std::map<std::string, const ParameterSlot*> by_name;
    for (const LayerSlot& layer : layout.layers()) {
      for (const ParameterSlot& slot : layer.parameters) by_name[slot.spec.name] = &slot;
    }
    for (const auto& [name, slot] : by_name) {
      numbers[slot->id] = static_cast<int64_t>(described.size());
      described.push_back({{"name", name}, {"shape", slot->spec.shape}});
    }
  }
  // The same ranges with a parameter's place among the names instead of its id.
  std::vector<OwnedRange> numbered(std::vector<OwnedRange> ranges) const {
    for (OwnedRange& range : ranges) range.parameter = numbers.at(range.parameter);
    return ranges;
  }

  Json described = Json::array();  // name and shape of each: what makes two models the same
  std::map<int64_t, int64_t> numbers;
};

// "weight [4,3]" and what the other has of that name.
[[noreturn]] void refuse_model(const std::string& where, const std::string& name, const Json* there, const Json* here) {
  const auto shape = [](const Json* parameter) { return parameter ? parameter->at("shape").dump() : "missing"; };
  throw Error(where + " is of another model: parameter " + name + " is " + shape(there) + " there and " + shape(here) +
              " here");
}

void check_model(const std::string& where, const Json& saved, const Json& mine) {
  size_t i = 0, k = 0;
  while (i < saved.size() || k < mine.size()) {
    const Json* there = i < saved.size() ? &saved[i] : nullptr;
    const Json* here = k < mine.size() ? &mine[k] : nullptr;
    const auto name = [](const Json* parameter) { return parameter->at("name").get<std::string>(); };
    if (!here || (there && name(there) < name(here))) refuse_model(where, name(there), there, nullptr);
    if (!there || name(here) < name(there)) refuse_model(where, name(here), nullptr, here);
    if (*there != *here) refuse_model(where, name(here), there, here);
    ++i, ++k;
  }
}

const char* name_of(OptimizerSettings::Kind kind) {
  switch (kind) {
    case OptimizerSettings::Kind::adam:
      return "Adam";
    case OptimizerSettings::Kind::sgd:
      return "SGD";
    case OptimizerSettings::Kind::lamb:
      break;
  }
  return "Lamb";
}

std::vector<ShardArray> arrays_of(const ShardedOptimizer& optimizer) {
  std::vector<ShardArray> arrays;
  for (const NamedShard& shard : optimizer.arrays()) arrays.push_back({shard.name, shard.values.data_ptr<float>()});
  return arrays;
}

// Where every rank holds everything, each saves a part only.
std::vector<OwnedRange> ranges_to_save(const ZeroContext& c, const ShardedOptimizer& optimizer) {
  if (c.settings.stage > 0) return ParameterNames(c.layout).numbered(optimizer.ranges());
  const Partition parts = Partition::contiguous(c.layout);
  std::vector<OwnedRange> ranges = owned_ranges(c.layout, parts, c.comm.rank());
  for (OwnedRange& range : ranges) range.shard_begin += c.comm.rank() * parts.shard_size();
  return ParameterNames(c.layout).numbered(ranges);
}

at::Generator generator() { return at::detail::getDefaultCPUGenerator(); }

Blob generator_blob(const at::Tensor& state) { return {"random generator", state.data_ptr(), state.nbytes()}; }

Json description_of(const Checkpointed& what, const Json& client_state) {
  const ZeroContext& c = what.context;
  return {{"version", kCheckpointVersion},       {"world_size", c.comm.size()},
          {"stage", c.settings.stage},           {"optimizer", name_of(c.settings.optimizer.kind)},
          {"precision", c.settings.precision()}, {"optimizer_state", what.optimizer.state()},
          {"client_state", client_state},        {"parameters", ParameterNames(c.layout).described}};
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot read " + file.string() + ": there is no checkpoint");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class Loader {
 public:
  Loader(const Checkpointed& what, const fs::path& folder)
      : what_(what),
        folder_(folder),
        parameters_(what.context.layout),
        ranges_(parameters_.numbered(what.optimizer.ranges())) {}

  // Everything that can be wrong with the files is found here, before anything is changed.
  void check() {
    const std::string where = folder_.string();
    const Json saved = Json::parse(read_text(folder_ / kDescription), nullptr, /*allow_exceptions=*/false);
    if (!saved.is_object()) throw Error((folder_ / kDescription).string() + " is truncated or no JSON object");
    const int64_t version = saved.value("version", int64_t{0});
    if (version != kCheckpointVersion) {
      throw Error(where + " has version " + std::to_string(version) +
                  " of the checkpoint format; this program reads version " + std::to_string(kCheckpointVersion));
    }
    check_model(where, saved.at("parameters"), parameters_.described);
    const std::string mine = name_of(what_.context.settings.optimizer.kind);
    if (saved.at("optimizer") != mine) {
      throw Error(where + " was trained with " + saved.at("optimizer").get<std::string>() + "; this run uses " + mine);
    }
    client_state_ = saved.at("client_state");
    optimizer_state_ = saved.at("optimizer_state");
    open_shards(saved.at("world_size").get<int>());
  }

  void read() {
    for (const ShardArray& array : arrays_of(what_.optimizer)) {
      for (const auto& shard : shards_) {
        for_each_overlap(*shard, [&](const OwnedRange& mine, int64_t in_shard, int64_t in_mine, int64_t size) {
          shard->read(array.name, in_shard, size, array.values + mine.shard_begin + in_mine);
        });
      }
    }
    for (const Blob& blob : what_.blobs) own_shard().read(blob);
    if (static_cast<int>(shards_.size()) == what_.context.comm.size()) {
      at::Tensor state = generator().get_state();
      own_shard().read(generator_blob(state));
      generator().set_state(state);
    }
    what_.optimizer.restore(optimizer_state_);
  }

  const Json& client_state() const { return client_state_; }

 private:
  void open_shards(int count) {
    int64_t wanted = 0, found = 0;
    for (const OwnedRange& range : ranges_) wanted += range.size;
    for (int rank = 0; rank < count; ++rank) {
      shards_.push_back(std::make_unique<ShardReader>((folder_ / shard_name(rank)).string()));
      for_each_overlap(*shards_.back(), [&](const OwnedRange&, int64_t, int64_t, int64_t size) { found += size; });
      for (const ShardArray& array : arrays_of(what_.optimizer)) {
        if (!shards_.back()->has_array(array.name)) {
          throw Error(folder_.string() + " has no \"" + array.name + "\" of the optimizer; was its momentum 0?");
        }
      }
    }
    if (shards_.empty() || found != wanted) throw Error(folder_.string() + " does not hold the whole model");
    for (const Blob& blob : what_.blobs) own_shard().check(blob);
  }

  const ShardReader& own_shard() const {
    return *shards_[static_cast<size_t>(what_.context.comm.rank()) % shards_.size()];
  }

  // Calls call(my range, first element in the shard's arrays, first element in my range, elements).
  template <typename Call>
  void for_each_overlap(const ShardReader& shard, Call call) const {
    for (const OwnedRange& mine : ranges_) {
      for (const OwnedRange& theirs : shard.ranges()) {
        if (theirs.parameter != mine.parameter) continue;
        const int64_t begin = std::max(mine.begin, theirs.begin);
        const int64_t end = std::min(mine.begin + mine.size, theirs.begin + theirs.size);
        if (begin >= end) continue;
        call(mine, theirs.shard_begin + begin - theirs.begin, begin - mine.begin, end - begin);
      }
    }
  }

  const Checkpointed& what_;
  fs::path folder_;
  ParameterNames parameters_;
  std::vector<OwnedRange> ranges_;
  Json client_state_, optimizer_state_;
  std::vector<std::unique_ptr<ShardReader>> shards_;
};

}  // namespace

void save_checkpoint(const Checkpointed& what, const std::string& dir, const std::string& tag,
                     const Json& client_state) {
  Comm& comm = what.context.comm;
  const bool leads = comm.rank() == 0;
  const std::string unfinished = "." + tag + ".unfinished";
  const fs::path folder = fs::path(dir) / unfinished;
  together(comm, [&] {
    check_tag(tag);
    if (!leads) return;
    fs::remove_all(folder);  // of a save that was killed
    fs::create_directories(folder);
  });
  together(comm, [&] {
    std::vector<Blob> blobs = what.blobs;
    const at::Tensor random = generator().get_state();
    blobs.push_back(generator_blob(random));
    write_shard((folder / shard_name(comm.rank())).string(), ranges_to_save(what.context, what.optimizer),
                arrays_of(what.optimizer), blobs);
  });
  together(comm, [&] {
    if (!leads) return;
    write_text_atomically((folder / kDescription).string(), description_of(what, client_state).dump(1) + "\n");
    sync_folder(folder.string());
    put_folder_in_place(dir, unfinished, tag);
    write_text_atomically((fs::path(dir) / kLatest).string(), tag + "\n");
    sync_folder(dir);
    fs::remove_all(folder);  // what had the tag before
  });
}

Json load_checkpoint(const Checkpointed& what, const std::string& dir, const std::string& tag) {
  std::unique_ptr<Loader> loader;
  together(what.context.comm, [&] {
    std::string name = tag;
    if (name.empty()) {
      name = read_text(fs::path(dir) / kLatest);
      name.erase(name.find_last_not_of(" \n") + 1);
    }
    check_tag(name);
    loader = std::make_unique<Loader>(what, fs::path(dir) / name);
    loader->check();
  });
  together(what.context.comm, [&] { loader->read(); });
  return loader->client_state();
}

bool has_checkpoint(const std::string& dir) { return fs::exists(fs::path(dir) / kLatest); }

}  // namespace dsat::trainer
