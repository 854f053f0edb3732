#include "zero/save_and_load.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>

#include "device/random_state.h"
#include "files/checkpoint_dir.h"
#include "files/durable_file.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLatest = "latest";
constexpr const char* kDescription = "checkpoint.json";

// `rank`: among those of its stage.
std::string shard_name(int stage, int stages, int rank) {
  char name[48];
  if (stages == 1) {
    std::snprintf(name, sizeof name, "rank_%05d.ckpt", rank);
  } else {
    std::snprintf(name, sizeof name, "stage_%03d_rank_%05d.ckpt", stage, rank);
  }
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

// The optimizer's arrays in memory of the host; those of a device are copies.
class HostArrays {
 public:
  explicit HostArrays(const ShardedOptimizer& optimizer) : shards_(optimizer.arrays()) {
    for (const NamedShard& shard : shards_) {
      copies_.push_back(shard.values.to(at::kCPU));
      arrays_.push_back({shard.name, copies_.back().data_ptr<float>()});
    }
  }
  const std::vector<ShardArray>& arrays() const { return arrays_; }
  void write_back() const {
    for (size_t i = 0; i < shards_.size(); ++i) {
      if (!shards_[i].values.is_cpu()) shards_[i].values.copy_(copies_[i]);
    }
  }

 private:
  std::vector<NamedShard> shards_;
  std::vector<at::Tensor> copies_;
  std::vector<ShardArray> arrays_;
};

// Where every rank holds everything, each saves a part only.
std::vector<OwnedRange> ranges_to_save(const Checkpointed& what, const CheckpointTable& table) {
  const ZeroContext& c = what.context;
  if (c.settings.stage > 0) return table.to_save(what.optimizer.ranges());
  const Partition parts = Partition::contiguous(c.layout);
  std::vector<OwnedRange> ranges = owned_ranges(c.layout, parts, c.comm.rank());
  for (OwnedRange& range : ranges) range.shard_begin += c.comm.rank() * parts.shard_size();
  return table.to_save(ranges);
}

Blob blob_of(const std::string& name, const at::Tensor& state) { return {name, state.data_ptr(), state.nbytes()}; }

Json description_of(const Checkpointed& what, const CheckpointTable& table, const Json& client_state) {
  const ZeroContext& c = what.context;
  return {{"version", kCheckpointVersion},
          {"world_size", what.scope.ranks.size()},
          {"pipeline_stages", what.scope.stages},
          {"stage", c.settings.stage},
          {"optimizer", name_of(c.settings.optimizer.kind)},
          {"precision", c.settings.precision()},
          {"optimizer_state", what.optimizer.state()},
          {"client_state", client_state},
          {"parameters", table.described()}};
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot read " + file.string() + ": there is no checkpoint");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class Loader {
 public:
  Loader(const Checkpointed& what, const CheckpointTable& table, const fs::path& folder)
      : what_(what), table_(table), folder_(folder), ranges_(table.numbered(what.optimizer.ranges())) {}

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
    table_.check(where, saved.at("parameters"));
    const std::string mine = name_of(what_.context.settings.optimizer.kind);
    if (saved.at("optimizer") != mine) {
      throw Error(where + " was trained with " + saved.at("optimizer").get<std::string>() + "; this run uses " + mine);
    }
    client_state_ = saved.at("client_state");
    optimizer_state_ = saved.at("optimizer_state");
    open_shards(saved.at("world_size").get<int>(), saved.value("pipeline_stages", 1));
  }

  void read() {
    const HostArrays host(what_.optimizer);
    for (const ShardArray& array : host.arrays()) {
      for (const auto& shard : shards_) {
        for_each_overlap(*shard, [&](const OwnedRange& mine, int64_t in_shard, int64_t in_mine, int64_t size) {
          shard->read(array.name, in_shard, size, array.values + mine.shard_begin + in_mine);
        });
      }
    }
    host.write_back();
    for (const Blob& blob : what_.blobs) holder_of(blob).read(blob);
    if (is_cut_alike_) read_generators(*shards_[static_cast<size_t>(what_.scope.ranks.rank())]);
    what_.optimizer.restore(optimizer_state_);
  }

  const Json& client_state() const { return client_state_; }

 private:
  // A checkpoint of another kind of device has no state for this one's generator.
  void read_generators(const ShardReader& shard) const {
    for (auto& [name, generator] : generators_of(what_.context.device)) {
      if (!shard.has_blob(name)) continue;
      const at::Tensor state = generator.get_state();
      shard.read(blob_of(name, state));
      generator.set_state(state);
    }
  }

  void open_shards(int ranks, int stages) {
    is_cut_alike_ = ranks == what_.scope.ranks.size() && stages == what_.scope.stages;
    int64_t wanted = 0, found = 0;
    for (const OwnedRange& range : ranges_) wanted += range.size;
    if (stages < 1 || ranks % stages != 0) {
      throw Error((folder_ / kDescription).string() + " is damaged: " + std::to_string(ranks) + " ranks in " +
                  std::to_string(stages) + " stages");
    }
    const int of_a_stage = ranks / stages;
    for (int i = 0; i < ranks; ++i) {
      const std::string name = shard_name(i / of_a_stage, stages, i % of_a_stage);
      shards_.push_back(std::make_unique<ShardReader>((folder_ / name).string()));
      for_each_overlap(*shards_.back(), [&](const OwnedRange&, int64_t, int64_t, int64_t size) { found += size; });
      for (const NamedShard& array : what_.optimizer.arrays()) {
        if (!shards_.back()->has_array(array.name)) {
          throw Error(folder_.string() + " has no \"" + array.name + "\" of the optimizer; was its momentum 0?");
        }
      }
    }
    if (shards_.empty() || found != wanted) throw Error(folder_.string() + " does not hold the whole model");
    for (const Blob& blob : what_.blobs) holder_of(blob).check(blob);
  }

  // Of the ranks that have saved it the one in this rank's place.
  const ShardReader& holder_of(const Blob& blob) const {
    std::vector<const ShardReader*> holders;
    for (const auto& shard : shards_) {
      if (shard->has_blob(blob.name)) holders.push_back(shard.get());
    }
    if (holders.empty()) throw Error(folder_.string() + " is of another model: it has no " + blob.name);
    return *holders[static_cast<size_t>(what_.context.comm.rank()) % holders.size()];
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
  const CheckpointTable& table_;
  fs::path folder_;
  std::vector<OwnedRange> ranges_;
  Json client_state_, optimizer_state_;
  std::vector<std::unique_ptr<ShardReader>> shards_;
  bool is_cut_alike_ = false;  // into as many ranks and pipeline stages
};

}  // namespace

void save_checkpoint(const Checkpointed& what, const std::string& dir, const std::string& tag,
                     const Json& client_state) {
  Comm& comm = what.scope.ranks;
  const CheckpointTable table(what.context.layout, what.scope);
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
    std::vector<at::Tensor> states;
    for (const auto& [name, generator] : generators_of(what.context.device)) {
      states.push_back(generator.get_state());
      blobs.push_back(blob_of(name, states.back()));
    }
    const std::string name = shard_name(what.scope.stage, what.scope.stages, what.context.comm.rank());
    write_shard((folder / name).string(), ranges_to_save(what, table), HostArrays(what.optimizer).arrays(), blobs);
  });
  together(comm, [&] {
    if (!leads) return;
    write_text_atomically((folder / kDescription).string(), description_of(what, table, client_state).dump(1) + "\n");
    sync_folder(folder.string());
    put_folder_in_place(dir, unfinished, tag);
    write_text_atomically((fs::path(dir) / kLatest).string(), tag + "\n");
    sync_folder(dir);
    fs::remove_all(folder);  // what had the tag before
  });
}

Json load_checkpoint(const Checkpointed& what, const std::string& dir, const std::string& tag) {
  const CheckpointTable table(what.context.layout, what.scope);
  std::unique_ptr<Loader> loader;
  together(what.scope.ranks, [&] {
    std::string name = tag;
    if (name.empty()) {
      name = read_text(fs::path(dir) / kLatest);
      name.erase(name.find_last_not_of(" \n") + 1);
    }
    check_tag(name);
    loader = std::make_unique<Loader>(what, table, fs::path(dir) / name);
    loader->check();
  });
  together(what.scope.ranks, [&] { loader->read(); });
  return loader->client_state();
}

std::string mend_latest(const std::string& dir) {
  if (has_checkpoint(dir)) return "";
  const std::string tag = last_numbered(dir, "step", kDescription);
  if (!tag.empty()) write_text_atomically((fs::path(dir) / kLatest).string(), tag + "\n");
  return tag;
}

bool has_checkpoint(const std::string& dir) { return fs::exists(fs::path(dir) / kLatest); }

}  // namespace dsat::trainer
