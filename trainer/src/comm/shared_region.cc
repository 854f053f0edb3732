// Layout of the region: a header, then kPlaces places, each with a counter for every rank and two slots for every rank.
// All sizes are rounded up to pages, so that pages nobody touches take no memory.
#include "comm/shared_region.h"

#include <sys/mman.h>

namespace dsat::trainer {
namespace {

constexpr size_t kPage = 4096;

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

SharedRegion* current = nullptr;

}  // namespace

// At the front of the region. Fresh memory is zero, which is the right start for all of it.
struct SharedRegion::Header {
  std::atomic<uint32_t> users[kPlaces];  // ranks that have not left the place; 0: it is free
  std::atomic<bool> has_ended[1];        // as many as ranks; they go on behind the struct
};

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

SharedRegion::SharedRegion(int ranks)
    : ranks_(ranks),
      head_bytes_(whole_pages(sizeof(Header) + static_cast<size_t>(ranks))),
      place_bytes_(whole_pages(static_cast<size_t>(ranks) * sizeof(SharedCounter)) +
                   2 * kSlotBytes * static_cast<size_t>(ranks)),
      bytes_(head_bytes_ + kPlaces * place_bytes_) {
  void* const memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Without the memory there are no places, and ranks talk over Gloo.
  if (memory != MAP_FAILED) base_ = static_cast<char*>(memory);
  current = this;
}

SharedRegion::~SharedRegion() {
  current = nullptr;
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

SharedRegion* SharedRegion::of_this_process() { return current; }

void SharedRegion::set_ended(int rank) {
  if (base_ != nullptr) reinterpret_cast<Header*>(base_)->has_ended[rank] = true;
}

bool SharedRegion::has_ended(int rank) const { return reinterpret_cast<Header*>(base_)->has_ended[rank]; }

int SharedRegion::take_place(int users) {
  if (base_ == nullptr) return kNoPlace;
  for (int place = 0; place < kPlaces; ++place) {
    uint32_t nobody = 0;
    std::atomic<uint32_t>& used_by = reinterpret_cast<Header*>(base_)->users[place];
    if (!used_by.compare_exchange_strong(nobody, static_cast<uint32_t>(users))) continue;
    // The users before have left, so nobody reads these counters now.
    for (int position = 0; position < users; ++position) counter(place, position).value = 0;
    return place;
  }
  return kNoPlace;
}

void SharedRegion::leave_place(int place) { --reinterpret_cast<Header*>(base_)->users[place]; }

char* SharedRegion::place_begin(int place) const {
  return base_ + head_bytes_ + static_cast<size_t>(place) * place_bytes_;
}

SharedCounter& SharedRegion::counter(int place, int position) const {
  return reinterpret_cast<SharedCounter*>(place_begin(place))[position];
}

char* SharedRegion::slot(int place, int position, int half) const {
  char* const slots = place_begin(place) + whole_pages(static_cast<size_t>(ranks_) * sizeof(SharedCounter));
  return slots + static_cast<size_t>(2 * position + half) * kSlotBytes;
}

}  // namespace dsat::trainer
