// Saving goes in three steps that all ranks finish together: an empty hidden folder, one file a rank in it, and the
// rename of the folder to its tag by rank 0. Loading checks every file before it changes anything.
#include "zero/save_and_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>

#include "comm/gather_json.h"
#include "device/random_state.h"
#include "dsat/base/files.h"
#include "files/checkpoint_dir.h"
#include "files/durable_file.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

// Runs `step` on this rank and goes on only if it succeeded on all: a rank that fails alone would leave the others
// waiting in the next collective. `bad_json`: what is wrong when a JSON value is not there or of another type.
void on_every_rank(Comm& comm, const std::string& bad_json, const std::function<void()>& step) {
  std::exception_ptr mine;
  try {
    step();
  } catch (const Error&) {
    mine = std::current_exception();
  } catch (const Json::exception&) {
    mine = std::make_exception_ptr(Error(bad_json));
  } catch (const fs::filesystem_error& error) {
    mine = std::make_exception_ptr(
        Error(DSAT_INTERNAL, fmt::format("cannot change {}: {}", error.path1().string(), error.code().message())));
  }
  const double failures = sum_over_ranks(comm, {mine ? 1.0 : 0.0})[0];
  if (mine) std::rethrow_exception(mine);
  if (failures > 0) throw PeerLost("another rank failed at the checkpoint");
}

void check_tag(const std::string& tag) {
  const bool is_name = !tag.empty() && tag[0] != '.' && tag.find('/') == std::string::npos && tag != kLatestCheckpoint;
  if (!is_name) throw Error(fmt::format("the checkpoint's tag \"{}\" is no name for a folder", tag));
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

// The optimizer's arrays in memory of the host, where files are read and written. Those of a device are copies, which
// write_back() copies to the device again.
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

// What this rank saves of its shard. At stage 0 every rank holds everything: there each saves the part that it would
// own at stage 1, so that all write at once and nothing is written twice.
std::vector<OwnedRange> ranges_to_save(const CheckpointContents& what, const CheckpointParameters& table) {
  const ZeroContext& c = what.context;
  if (c.settings.stage > 0) return table.to_save(what.optimizer.ranges());
  const Partition parts = Partition::contiguous(c.layout);
  std::vector<OwnedRange> ranges = owned_ranges(c.layout, parts, c.comm.rank());
  for (OwnedRange& range : ranges) range.shard_begin += c.comm.rank() * parts.shard_size();
  return table.to_save(ranges);
}

Blob blob_of(const std::string& name, const at::Tensor& state) { return {name, state.data_ptr(), state.nbytes()}; }

// Those of all stages: {name, shape, dtype} each.
Json buffers_of_all(const CheckpointContents& what) {
  Json mine = Json::array();
  for (const WeightSpec& spec : what.buffers) {
    mine.push_back({{"name", spec.name}, {"shape", spec.shape}, {"dtype", described_type(spec.dtype)}});
  }
  if (what.scope.stages == 1) return mine;
  Json all = Json::array();
  for (const Json& of_rank : gather_json(what.scope.ranks, what.context.comm.rank() == 0 ? mine : Json::array())) {
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  return all;
}

Json description_of(const CheckpointContents& what, const CheckpointParameters& table, const Json& buffers,
                    const Json& client_state) {
  const ZeroContext& c = what.context;
  return {{"version", kCheckpointVersion},
          {"world_size", what.scope.ranks.size()},
          {"pipeline_stages", what.scope.stages},
          {"stage", c.settings.stage},
          {"optimizer", name_of(c.settings.optimizer.kind)},
          {"precision", c.settings.precision()},
          {"optimizer_state", what.optimizer.state()},
          {"client_state", client_state},
          {"parameters", table.described()},
          {"aliases", what.aliases},
          {"buffers", buffers}};
}

std::string read_text(const fs::path& file) {
  FileText text = try_read_file(file);
  if (text.ok()) return std::move(text.bytes);
  throw Error(fmt::format("cannot read {}: {}; there is no checkpoint", file.string(), text.problem));
}

class CheckpointLoader {
 public:
  CheckpointLoader(const CheckpointContents& what, const CheckpointParameters& table, const fs::path& folder)
      : what_(what), table_(table), folder_(folder), ranges_(table.numbered(what.optimizer.ranges())) {}

  // Everything that can be wrong with the files is found here, before anything is changed.
  void check() {
    const std::string where = folder_.string();
    const Json saved = Json::parse(read_text(folder_ / kCheckpointDescription), nullptr, /*allow_exceptions=*/false);
    if (!saved.is_object()) {
      throw Error(fmt::format("{} is truncated or no JSON object", (folder_ / kCheckpointDescription).string()));
    }
    const int64_t version = saved.value("version", int64_t{0});
    if (version != kCheckpointVersion) {
      throw Error(fmt::format("{} has version {} of the checkpoint format; this program reads version {}", where,
                              version, kCheckpointVersion));
    }
    table_.check(where, saved.at("parameters"));
    const auto theirs = saved.at("optimizer").get<std::string>();
    const std::string mine = name_of(what_.context.settings.optimizer.kind);
    if (theirs != mine) throw Error(fmt::format("{} was trained with {}; this run uses {}", where, theirs, mine));
    client_state_ = saved.at("client_state");
    optimizer_state_ = saved.at("optimizer_state");
    open_shards(saved.at("world_size").get<int>(), saved.at("pipeline_stages").get<int>());
  }

  // Changes the optimizer. check() has found all that can be wrong, so only a disk that fails can stop it half way.
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
    if (has_same_cut_) read_generators(*shards_[static_cast<size_t>(what_.scope.ranks.rank())]);
    what_.optimizer.restore(optimizer_state_);
  }

  const Json& client_state() const { return client_state_; }

 private:
  // A generator goes on only where this rank computes what it would have computed. A checkpoint that was saved on
  // another kind of device has no state for this one's generator.
  void read_generators(const ShardReader& shard) const {
    for (auto& [name, generator] : generators_of(what_.context.device)) {
      if (!shard.has_blob(name)) continue;
      const at::Tensor state = generator.get_state();
      shard.read(blob_of(name, state));
      generator.set_state(state);
    }
  }

  // `ranks` and `stages`: those of the checkpoint. Its shards must hold every element that this rank wants, just once.
  void open_shards(int ranks, int stages) {
    has_same_cut_ = ranks == what_.scope.ranks.size() && stages == what_.scope.stages;
    int64_t wanted = 0, found = 0;
    for (const OwnedRange& range : ranges_) wanted += range.size;
    if (stages < 1 || ranks % stages != 0) {
      throw Error(fmt::format("{} is damaged: {} ranks in {} stages", (folder_ / kCheckpointDescription).string(),
                              ranks, stages));
    }
    const int of_a_stage = ranks / stages;
    for (int i = 0; i < ranks; ++i) {
      const std::string name = checkpoint_shard_name(i / of_a_stage, stages, i % of_a_stage);
      shards_.push_back(std::make_unique<ShardReader>((folder_ / name).string()));
      for_each_overlap(*shards_.back(), [&](const OwnedRange&, int64_t, int64_t, int64_t size) { found += size; });
      for (const NamedShard& array : what_.optimizer.arrays()) {
        if (!shards_.back()->has_array(array.name)) {
          throw Error(
              fmt::format("{} has no \"{}\" of the optimizer; was its momentum 0?", folder_.string(), array.name));
        }
      }
    }
    if (shards_.empty() || found != wanted) {
      throw Error(fmt::format("{} does not hold the whole model", folder_.string()));
    }
    for (const Blob& blob : what_.blobs) holder_of(blob).check(blob);
  }

  // The file of the rank in this rank's place, counted among the ranks that have saved this blob.
  const ShardReader& holder_of(const Blob& blob) const {
    std::vector<const ShardReader*> holders;
    for (const auto& shard : shards_) {
      if (shard->has_blob(blob.name)) holders.push_back(shard.get());
    }
    if (holders.empty()) {
      throw Error(fmt::format("{} is of another model: it has no {}", folder_.string(), blob.name));
    }
    return *holders[static_cast<size_t>(what_.context.comm.rank()) % holders.size()];
  }

  // Where the parameters of `shard` and of this rank overlap: calls call(my range, first element in the shard's arrays,
  // first element in my range, elements).
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

  const CheckpointContents& what_;
  const CheckpointParameters& table_;
  fs::path folder_;
  std::vector<OwnedRange> ranges_;
  Json client_state_, optimizer_state_;
  std::vector<std::unique_ptr<ShardReader>> shards_;
  bool has_same_cut_ = false;  // as many ranks and pipeline stages as now
};

}  // namespace

void save_checkpoint(const CheckpointContents& what, const std::string& dir, const std::string& tag,
                     const Json& client_state) {
  Comm& comm = what.scope.ranks;
  const CheckpointParameters table(what.context.layout, what.scope);
  const Json buffers = buffers_of_all(what);
  const bool leads = comm.rank() == 0;
  // A name that no tag can have (check_tag): a save that is killed leaves it behind, and never a half TAG.
  const std::string unfinished = fmt::format(".{}.unfinished", tag);
  const std::string bad_json = "the client state cannot be saved: its texts must be UTF-8";
  const fs::path folder = fs::path(dir) / unfinished;
  on_every_rank(comm, bad_json, [&] {
    check_tag(tag);
    if (!leads) return;
    fs::remove_all(folder);  // left by a save that was killed
    fs::create_directories(folder);
  });
  on_every_rank(comm, bad_json, [&] {
    std::vector<Blob> blobs = what.blobs;
    std::vector<at::Tensor> states;
    for (const auto& [name, generator] : generators_of(what.context.device)) {
      states.push_back(generator.get_state());
      blobs.push_back(blob_of(name, states.back()));
    }
    const std::string name = checkpoint_shard_name(what.scope.stage, what.scope.stages, what.context.comm.rank());
    write_shard((folder / name).string(), ranges_to_save(what, table), HostArrays(what.optimizer).arrays(), blobs);
  });
  // The renames come last: until then a reader finds the old checkpoint, from then on the new one.
  on_every_rank(comm, bad_json, [&] {
    if (!leads) return;
    write_file_atomically(folder / kCheckpointDescription,
                          description_of(what, table, buffers, client_state).dump(1) + "\n");
    sync_folder(folder.string());
    put_folder_in_place(dir, unfinished, tag);
    write_file_atomically(fs::path(dir) / kLatestCheckpoint, tag + "\n");
    sync_folder(dir);
    fs::remove_all(folder);  // now it is the folder that had the tag before
  });
}

Json load_checkpoint(const CheckpointContents& what, const std::string& dir, const std::string& tag) {
  const CheckpointParameters table(what.context.layout, what.scope);
  const std::string bad_json = fmt::format(
      "the checkpoint in {} is damaged: {} lacks a value or has one of another type", dir, kCheckpointDescription);
  std::unique_ptr<CheckpointLoader> loader;
  on_every_rank(what.scope.ranks, bad_json, [&] {
    std::string name = tag;
    if (name.empty()) {
      name = read_text(fs::path(dir) / kLatestCheckpoint);
      name.erase(name.find_last_not_of(" \n") + 1);
    }
    check_tag(name);
    loader = std::make_unique<CheckpointLoader>(what, table, fs::path(dir) / name);
    loader->check();
  });
  on_every_rank(what.scope.ranks, bad_json, [&] { loader->read(); });
  return loader->client_state();
}

std::string repair_latest(const std::string& dir) {
  if (has_checkpoint(dir)) return "";
  const std::string tag = last_numbered(dir, "step", kCheckpointDescription);
  if (!tag.empty()) write_file_atomically(fs::path(dir) / kLatestCheckpoint, tag + "\n");
  return tag;
}

bool has_checkpoint(const std::string& dir) {
  const fs::path latest = fs::path(dir) / kLatestCheckpoint;
  std::error_code error;
  const bool is_there = fs::exists(latest, error);
  if (error) throw Error(DSAT_INTERNAL, fmt::format("cannot look at {}: {}", latest.string(), error.message()));
  return is_there;
}

}  // namespace dsat::trainer
