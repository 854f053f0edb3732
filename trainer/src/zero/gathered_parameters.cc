// Gathers groups when an operation is about to read them, and releases them when nothing needs them any more.
// The storages that the model's tensors share have no memory: gathering sets their data pointer, release clears it.
#include "zero/gathered_parameters.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/offload_memory.h"

namespace dsat::trainer {
namespace {

std::vector<int64_t> sizes_of(const Layout& layout) {
  std::vector<int64_t> sizes;
  for (const GroupSlot& group : layout.groups()) sizes.push_back(group.size);
  return sizes;
}

// The bytes that a reader by a pointer gets, by the parameter that lies there.
std::vector<AbsentMemory::Part> absent_parts(const GroupSlot& group, size_t element_bytes, int rank) {
  std::vector<AbsentMemory::Part> parts;
  for (const ParameterSlot& slot : group.parameters) {
    parts.push_back(
        {static_cast<size_t>(slot.begin - group.begin + slot.size) * element_bytes,
         fmt::format("parameter {} was read by a pointer (data_ptr()) while only its parts are there, as at "
                     "stage 3 outside of operations: read it within engine->edit_parameters(), or use "
                     "engine->full_state_dict() (rank {})",
                     slot.spec.name, rank)});
  }
  return parts;
}

// A flat tensor whose storage has a size but no memory, until somebody sets its data pointer. Views of it are legal,
// and only reading them is not.
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
  shard_ = state_zeros(size, c.dtype, c.device, c.settings.offload_param);
  int64_t shard_begin = 0;
  for (const GroupSlot& layer : c.layout.groups()) {
    GatheredGroup group;
    group.size = layer.size;
    group.shard_begin = shard_begin;
    group.is_persistent = layer.is_persistent;
    shard_begin += layer.size / c.comm.size();
    groups_.push_back(std::move(group));
  }
}

GatheredParameters::~GatheredParameters() = default;

void GatheredParameters::bind(size_t id) {
  const GroupSlot& layer = c_.layout.groups()[id];
  const at::Tensor full = without_memory(layer.size, c_.options());
  groups_[id].storage = full.storage();
  if (c_.device.is_cpu()) {
    groups_[id].absent = std::make_unique<AbsentMemory>(absent_parts(layer, full.element_size(), c_.comm.rank()));
    point_nowhere(groups_[id]);
  }
  make_views(leaves_[id], layer, full, layer.begin);
}

// Last, because the views are made by operations too.
void GatheredParameters::all_bound() {
  std::vector<c10::Storage> storages;
  for (const GatheredGroup& group : groups_) storages.push_back(group.storage);
  watch_.emplace(*this, std::move(storages));
}

// The other groups are gathered when they are used, and find the new values then.
void GatheredParameters::publish() {
  for (size_t id = 0; id < groups_.size(); ++id) {
    if (!groups_[id].is_persistent) continue;
    gather_now(id);
  }
}

void GatheredParameters::hold(size_t id) {
  groups_[id].is_held = true;
  if (!groups_[id].block.defined()) gather_now(id);
}

// The block is at the same place as the group's storage, through which the tensors see it.
void GatheredParameters::take(size_t id) {
  GatheredGroup& group = groups_[id];
  const GroupSlot& layer = c_.layout.groups()[id];
  const at::Tensor whole = at::empty({0}, c_.options()).set_(group.storage, 0, {group.size}, {1});
  take_back(leaves_[id], layer, whole, layer.begin);
  const int64_t part = group.size / c_.comm.size();
  c_.comm_thread.run("the exchange of edited parameters", [&](Comm& comm) {
    broadcast_elements(comm, group.block, 0);
    shard_.narrow(0, group.shard_begin, part).copy_(group.block.narrow(0, comm.rank() * part, part));
  });
  group.is_held = false;
  if (!group.is_persistent) release(id);
}

// The arena is enough as long as no group is kept or gathered ahead: then one group at a time is there.
void GatheredParameters::begin_step() {
  int64_t largest = 0;
  for (const GatheredGroup& group : groups_) largest = std::max(largest, group.is_persistent ? 0 : group.size);
  const bool is_one_at_a_time = !keeps_groups() && c_.settings.prefetch_bucket == 0;
  if (is_one_at_a_time) arena_ = at::empty({largest}, c_.options());
}

// What is kept for reuse goes too: between steps a rank holds its shard and the persistent groups only.
void GatheredParameters::end_step() {
  for (size_t id = 0; id < groups_.size(); ++id) {
    if (groups_[id].block.defined() && !groups_[id].is_persistent) release(id);
  }
  arena_.reset();
}

// The fingerprint is a number below 2^52, which a double holds exactly. The maximum and the negated minimum add up to 0
// only if all ranks have the same fingerprint.
void GatheredParameters::compare_uses() {
  if (c_.comm.size() == 1) return;
  const auto own = static_cast<double>(trace_.fingerprint());
  std::vector<double> bounds;
  c_.comm_thread.run("the comparison of what was used", [&](Comm& comm) {
    bounds = max_over_ranks(comm, {own, -own});
  });
  if (bounds[0] == -bounds[1]) return;
  throw Error(
      DSAT_INTERNAL,
      "ranks have used different parameters in this step, or in different orders; at stage 3 all must use the same, "
      "at stages 0 to 2 they need not");
}

void GatheredParameters::check() {
  if (failure_) std::rethrow_exception(failure_);
}

// On the way of every operation that reads the group. The order matters for the peak: what is not needed is released
// before the group's own block is taken, and the next groups are fetched only when this one is there.
void GatheredParameters::before_use(size_t id) noexcept {
  GatheredGroup& group = groups_[id];
  ++group.uses;
  if (group.is_persistent) return;
  try {
    if (failure_) return use_placeholder(id);
    trace_.use(id);
    group.is_prefetched = false;
    release_idle(id);
    if (!group.block.defined()) {
      make_room(id);
      gather_now(id);
    }
    if (group.pending) finish_gathering(id);
    prefetch();
  } catch (...) {
    failure_ = std::current_exception();
    use_placeholder(id);
  }
}

// In backward, the last gradient of a group is the last use of its parameters in the micro step. During forward no such
// moment is known: there release_idle() and make_room() drop a group when another one is needed.
void GatheredParameters::group_done(size_t id) {
  const GatheredGroup& group = groups_[id];
  if (!group.stays() && group.block.defined() && group.uses == 0 && !is_used_soon(id)) release(id);
}

// Whether a group that nothing reads now stays, because it was fetched ahead or is soon read again (elements until its
// next use, as stage3_max_reuse_distance counts them).
bool GatheredParameters::is_used_soon(size_t id) const {
  if (groups_[id].is_prefetched) return true;
  if (!keeps_groups()) return false;
  const std::optional<int64_t> distance = trace_.distance_to(id);
  return distance && (c_.settings.max_reuse_distance < 0 || *distance <= c_.settings.max_reuse_distance);
}

// Groups that were read before and are not needed soon. Their release makes the arena free for the next group.
void GatheredParameters::release_idle(size_t except) {
  for (size_t id = 0; id < groups_.size(); ++id) {
    const GatheredGroup& group = groups_[id];
    if (id == except || group.stays() || !group.block.defined() || group.uses > 0) continue;
    if (!is_used_soon(id)) release(id);
  }
}

// Keeps stage3_max_live_parameters: releases idle groups until `id` fits, the one with the farthest next use first,
// which is the best choice where the future is known (Belady, 1966).
void GatheredParameters::make_room(size_t id) {
  if (c_.settings.max_live_parameters == 0) return;
  while (live_elements_ + groups_[id].size > c_.settings.max_live_parameters) {
    const std::optional<size_t> farthest = farthest_idle(id);
    if (!farthest) return;  // what is left is being read
    release(*farthest);
  }
}

std::optional<size_t> GatheredParameters::farthest_idle(size_t except) const {
  std::optional<size_t> farthest;
  int64_t farthest_distance = -1;
  for (size_t id = 0; id < groups_.size(); ++id) {
    const GatheredGroup& group = groups_[id];
    if (id == except || group.stays() || !group.block.defined() || group.uses > 0) continue;
    const int64_t distance = trace_.distance_to(id).value_or(INT64_MAX);
    if (distance <= farthest_distance) continue;
    farthest = id;
    farthest_distance = distance;
  }
  return farthest;
}

// As DeepSpeed does: groups are added until the bucket is full, so the last one may go beyond it.
void GatheredParameters::prefetch() {
  if (c_.settings.prefetch_bucket == 0) return;
  int64_t ahead = 0;
  for (const GatheredGroup& group : groups_) ahead += group.is_prefetched ? group.size : 0;
  const int64_t most_live = c_.settings.max_live_parameters;
  for (const size_t next : trace_.upcoming()) {
    if (ahead >= c_.settings.prefetch_bucket) return;
    GatheredGroup& group = groups_[next];
    if (group.block.defined()) continue;
    if (most_live > 0 && live_elements_ + group.size > most_live) return;
    // With overlap_comm the storage stays without memory until before_use() has waited for the gathering.
    c_.settings.overlap_comm ? start_gathering(next) : gather_now(next);
    group.is_prefetched = true;
    ahead += group.size;
  }
}

// The arena if no tensor holds it, else a new block. Several groups need blocks at once where an operation reads
// several.
at::Tensor GatheredParameters::take_block(int64_t size) {
  if (arena_.defined() && size <= arena_.numel() && arena_.storage().use_count() == 1) return arena_.narrow(0, 0, size);
  return at::empty({size}, c_.options());
}

// The collective that fills the group's block, which is taken here, on the compute thread: what the communication
// thread allocates would come at a moment that differs from run to run. The operation owns the tensors that it uses.
CommThread::Operation GatheredParameters::gathering_of(size_t id) {
  GatheredGroup& group = groups_[id];
  if (!group.block.defined()) {
    group.block = take_block(group.size);
    if (!group.is_persistent) live_elements_ += group.size;
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
  return fmt::format("the gathering of {}", c_.layout.groups()[id].parameters.front().spec.name);
}

void GatheredParameters::gather_now(size_t id) {
  c_.comm_thread.run(name_of_gathering(id), gathering_of(id));
  point_storage_at(groups_[id], groups_[id].block.data_ptr());
}

void GatheredParameters::start_gathering(size_t id) {
  groups_[id].pending = c_.comm_thread.start(name_of_gathering(id), gathering_of(id));
}

void GatheredParameters::finish_gathering(size_t id) {
  GatheredGroup& group = groups_[id];
  const std::unique_ptr<Pending> pending = std::move(group.pending);
  pending->wait();
  point_storage_at(group, group.block.data_ptr());
}

void GatheredParameters::release(size_t id) {
  GatheredGroup& group = groups_[id];
  // The block may be freed only when the communication thread has filled it.
  if (group.pending) group.pending->wait();
  group.pending.reset();
  group.is_prefetched = false;
  point_nowhere(group);
  group.block.reset();
  live_elements_ -= group.size;
}

// After a failure: the kernel runs in any case, so it must find memory of the right size, whatever is in it.
void GatheredParameters::use_placeholder(size_t id) noexcept {
  GatheredGroup& group = groups_[id];
  const bool is_nowhere =
      group.storage.data() == nullptr || (group.absent && group.storage.data() == group.absent->data());
  if (!is_nowhere) return;
  if (group.block.defined()) return point_storage_at(group, group.block.data_ptr());
  placeholders_.push_back(host_zeros(group.size, c_.dtype, c_.device));
  point_storage_at(group, placeholders_.back().data_ptr());
}

// A data pointer without a deleter: the block owns the memory.
void GatheredParameters::point_storage_at(GatheredGroup& group, void* data) {
  group.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(data, c_.device));
}

}  // namespace dsat::trainer
