#include "zero/gathered_parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "device/offload_memory.h"

namespace dsat::trainer {
namespace {

std::vector<int64_t> sizes_of(const Layout& layout) {
  std::vector<int64_t> sizes;
  for (const LayerSlot& group : layout.layers()) sizes.push_back(group.size);
  return sizes;
}

at::Tensor without_memory(int64_t size, const at::TensorOptions& options) {
  at::Tensor tensor = at::empty({0}, options);
  const size_t bytes = static_cast<size_t>(size) * tensor.element_size();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, options.device()),
                       /*allocator=*/nullptr, /*resizable=*/false);
  return tensor.set_(std::move(storage), 0, {size}, {1});
}

}  // namespace

GatheredParameters::GatheredParameters(const ZeroContext& c, std::vector<Tensors> leaves)
    : Parameters(std::move(leaves)), c_(c), trace_(sizes_of(c.layout)) {
  const int64_t size = c.partition.shard_size();
  shard_ = c.settings.offload_param ? host_zeros(size, c.dtype, c.device) : at::zeros({size}, c.options());
  int64_t shard_begin = 0;
  for (const LayerSlot& layer : c.layout.layers()) {
    Group group;
    group.size = layer.size;
    group.shard_begin = shard_begin;
    group.is_persistent = layer.is_persistent;
    shard_begin += layer.size / c.comm.size();
    groups_.push_back(std::move(group));
  }
}

GatheredParameters::~GatheredParameters() = default;

void GatheredParameters::bind() {
  std::vector<c10::Storage> storages;
  for (size_t id = 0; id < groups_.size(); ++id) {
    const LayerSlot& layer = c_.layout.layers()[id];
    const at::Tensor full = without_memory(layer.size, c_.options());
    groups_[id].storage = full.storage();
    storages.push_back(full.storage());
    make_views(leaves_[id], layer, full, layer.begin);
  }
  watch_.emplace(*this, std::move(storages));
}

void GatheredParameters::publish() {
  for (size_t id = 0; id < groups_.size(); ++id) {
    if (!groups_[id].is_persistent) continue;
    gather_now(id);
  }
}

void GatheredParameters::begin_step() {
  int64_t largest = 0;
  for (const Group& group : groups_) largest = std::max(largest, group.is_persistent ? 0 : group.size);
  const bool is_one_at_a_time = !keeps_groups() && c_.settings.prefetch_bucket == 0;
  if (is_one_at_a_time) arena_ = at::empty({largest}, c_.options());
}

void GatheredParameters::end_step() {
  for (size_t id = 0; id < groups_.size(); ++id) {
    if (groups_[id].block.defined() && !groups_[id].is_persistent) release(id);
  }
  arena_.reset();
}

void GatheredParameters::compare_uses() {
  if (c_.comm.size() == 1) return;
  const auto own = static_cast<double>(trace_.fingerprint());
  std::vector<double> bounds;
  c_.lane.run("the comparison of what was used", [&](Comm& comm) { bounds = max_over_ranks(comm, {own, -own}); });
  if (bounds[0] == -bounds[1]) return;
  throw Error(
      DSAT_INTERNAL,
      "ranks have used different parameters in this step, or in different orders; at stage 3 all must use the same, "
      "at stages 0 to 2 they need not");
}

void GatheredParameters::check() {
  if (failure_) std::rethrow_exception(failure_);
}

void GatheredParameters::before_use(size_t id) noexcept {
  Group& group = groups_[id];
  ++group.uses;
  if (group.is_persistent) return;
  try {
    if (failure_) return lend_nothing(id);
    trace_.use(id);
    group.is_ahead = false;
    release_idle(id);
    if (!group.block.defined()) {
      make_room(id);
      gather_now(id);
    }
    if (group.pending) finish_gathering(id);
    prefetch();
  } catch (...) {
    failure_ = std::current_exception();
    lend_nothing(id);
  }
}

void GatheredParameters::group_done(size_t id) {
  const Group& group = groups_[id];
  if (!group.is_persistent && group.block.defined() && group.uses == 0 && !is_wanted(id)) release(id);
}

// Whether a group that nothing reads now stays, because it is soon read again.
bool GatheredParameters::is_wanted(size_t id) const {
  if (groups_[id].is_ahead) return true;
  if (!keeps_groups()) return false;
  const std::optional<int64_t> distance = trace_.distance_to(id);
  return distance && (c_.settings.max_reuse_distance < 0 || *distance <= c_.settings.max_reuse_distance);
}

void GatheredParameters::release_idle(size_t except) {
  for (size_t id = 0; id < groups_.size(); ++id) {
    const Group& group = groups_[id];
    if (id == except || group.is_persistent || !group.block.defined() || group.uses > 0) continue;
    if (!is_wanted(id)) release(id);
  }
}

void GatheredParameters::make_room(size_t id) {
  if (c_.settings.max_live_parameters == 0) return;
  while (live_ + groups_[id].size > c_.settings.max_live_parameters) {
    const std::optional<size_t> farthest = farthest_idle(id);
    if (!farthest) return;  // what is left is being read
    release(*farthest);
  }
}

std::optional<size_t> GatheredParameters::farthest_idle(size_t except) const {
  std::optional<size_t> farthest;
  int64_t farthest_distance = -1;
  for (size_t id = 0; id < groups_.size(); ++id) {
    const Group& group = groups_[id];
    if (id == except || group.is_persistent || !group.block.defined() || group.uses > 0) continue;
    const int64_t distance = trace_.distance_to(id).value_or(INT64_MAX);
    if (distance <= farthest_distance) continue;
    farthest = id;
    farthest_distance = distance;
  }
  return farthest;
}

// As DeepSpeed: groups are added until the bucket is full, so the last one may go beyond it.
void GatheredParameters::prefetch() {
  if (c_.settings.prefetch_bucket == 0) return;
  int64_t ahead = 0;
  for (const Group& group : groups_) ahead += group.is_ahead ? group.size : 0;
  const int64_t most_live = c_.settings.max_live_parameters;
  for (const size_t next : trace_.upcoming()) {
    if (ahead >= c_.settings.prefetch_bucket) return;
    Group& group = groups_[next];
    if (group.block.defined()) continue;
    if (most_live > 0 && live_ + group.size > most_live) return;
    c_.settings.overlap_comm ? start_gathering(next) : gather_now(next);
    group.is_ahead = true;
    ahead += group.size;
  }
}

at::Tensor GatheredParameters::take_block(int64_t size) {
  if (arena_.defined() && size <= arena_.numel() && arena_.storage().use_count() == 1) return arena_.narrow(0, 0, size);
  return at::empty({size}, c_.options());
}

// What is to be done on the lane.
Lane::Operation GatheredParameters::gathering(size_t id) {
  Group& group = groups_[id];
  if (!group.block.defined()) {
    group.block = take_block(group.size);
    if (!group.is_persistent) live_ += group.size;
  }
  const int64_t part = group.size / c_.comm.size();
  Tensors parts;
  for (int rank = 0; rank < c_.comm.size(); ++rank) parts.push_back(group.block.narrow(0, rank * part, part));
  const at::Tensor own = shard_.narrow(0, group.shard_begin, part);
  return [parts, own, bucket = c_.settings.allgather_bucket](Comm& comm) {
    parts[static_cast<size_t>(comm.rank())].copy_(own);
    all_gather(comm, parts, bucket, /*one_by_one=*/false);
  };
}

std::string GatheredParameters::name_of_gathering(size_t id) const {
  return "the gathering of " + c_.layout.layers()[id].parameters.front().spec.name;
}

void GatheredParameters::gather_now(size_t id) {
  c_.lane.run(name_of_gathering(id), gathering(id));
  lend(groups_[id], groups_[id].block.data_ptr());
}

void GatheredParameters::start_gathering(size_t id) {
  groups_[id].pending = c_.lane.start(name_of_gathering(id), gathering(id));
}

void GatheredParameters::finish_gathering(size_t id) {
  Group& group = groups_[id];
  const std::unique_ptr<Pending> pending = std::move(group.pending);
  pending->wait();
  lend(group, group.block.data_ptr());
}

void GatheredParameters::release(size_t id) {
  Group& group = groups_[id];
  if (group.pending) group.pending->wait();
  group.pending.reset();
  group.is_ahead = false;
  lend(group, nullptr);
  group.block.reset();
  live_ -= group.size;
}

void GatheredParameters::lend_nothing(size_t id) noexcept {
  Group& group = groups_[id];
  if (group.storage.data() != nullptr) return;
  if (group.block.defined()) return lend(group, group.block.data_ptr());
  nothing_.push_back(host_zeros(group.size, c_.dtype, c_.device));
  lend(group, nothing_.back().data_ptr());
}

void GatheredParameters::lend(Group& group, void* data) {
  group.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(data, c_.device));
}

}  // namespace dsat::trainer
