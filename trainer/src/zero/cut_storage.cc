// The storage's data pointer is exchanged for one that owns this rank's part: so a part ends with its storage, and the
// pointer's deleter shows that a storage is cut.
#include "zero/cut_storage.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Allocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autograd/absent_memory.h"

namespace dsat::trainer {
namespace {

struct Part {
  at::Tensor own;  // bytes
  AbsentMemory absent;
};

void end_part(void* part) { delete static_cast<Part*>(part); }

// Rank `rank`'s part of `bytes` bytes.
struct Range {
  int64_t begin, size;
};
Range range_of(int64_t bytes, int rank, int ranks) {
  const int64_t share = (bytes + ranks - 1) / ranks;
  const int64_t begin = std::min(bytes, rank * share);
  return {begin, std::min(share, bytes - begin)};
}

at::Tensor bytes_at(void* memory, int64_t begin, int64_t size) {
  return at::from_blob(static_cast<char*>(memory) + begin, {size}, at::TensorOptions().dtype(at::kByte));
}

void broadcast(Comm& comm, const at::Tensor& bytes, int root) {
  if (bytes.numel() == 0) return;
  if (const auto pending = comm.broadcast(bytes, root)) pending->wait();
}

AbsentMemory::Part reason(int64_t bytes, int rank) {
  return {
      static_cast<size_t>(bytes),
      fmt::format("a parameter was read before initialize() has the model that in_shards() made: only its parts are "
                  "there (rank {})",
                  rank)};
}

}  // namespace

bool is_cut(const c10::Storage& storage) { return storage.data_ptr().get_deleter() == &end_part; }

void cut(const c10::Storage& storage, Comm& comm) {
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  if (comm.size() == 1 || bytes == 0 || is_cut(storage)) return;
  void* const memory = storage.data_ptr().get();
  broadcast(comm, bytes_at(memory, 0, bytes), 0);
  const Range range = range_of(bytes, comm.rank(), comm.size());
  at::Tensor own = at::empty({range.size}, at::TensorOptions().dtype(at::kByte));
  own.copy_(bytes_at(memory, range.begin, range.size));
  auto* const part = new Part{std::move(own), AbsentMemory({reason(bytes, comm.rank())})};
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap({part->absent.data(), part, &end_part, at::kCPU});
}

void make_whole(const c10::Storage& storage, Comm& comm) {
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  c10::DataPtr whole = c10::GetAllocator(at::kCPU)->allocate(storage.nbytes());
  const at::Tensor& own = static_cast<Part*>(storage.data_ptr().get_context())->own;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const Range range = range_of(bytes, rank, comm.size());
    const at::Tensor to = bytes_at(whole.get(), range.begin, range.size);
    if (rank == comm.rank()) to.copy_(own);
    broadcast(comm, to, rank);
  }
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(whole));
}

}  // namespace dsat::trainer
