// A barrier over counters in shared memory: each rank raises its own counter and waits until the others' have reached
// the same round. It waits awake for a moment, then sleeps on a futex that the raising rank wakes.
#include "comm/shared_exchange.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <utility>

#include "dsat/trainer/comm.h"
#include "watch/heartbeat.h"

namespace dsat::trainer {
namespace {

// Ranks that compute the same mostly meet within this time, and a sleep with its wake-up costs a good part of it. The
// wait yields the processor, so that other threads may run meanwhile.
constexpr std::chrono::microseconds kAwake{200};
constexpr timespec kBetweenLooks{0, 100'000'000};  // how soon a rank that has ended is noticed

// Rounds wrap around: their difference says which comes first.
bool has_reached(const SharedCounter& counter, uint32_t round) {
  return static_cast<int32_t>(counter.value.load() - round) >= 0;
}

// The address that the kernel waits on. FUTEX_WAIT without the private flag works on memory that processes share.
uint32_t* word_of(SharedCounter& counter) { return reinterpret_cast<uint32_t*>(&counter.value); }

void sleep_until_changed(SharedCounter& counter, uint32_t seen) {
  ++counter.sleepers;
  ::syscall(SYS_futex, word_of(counter), FUTEX_WAIT, seen, &kBetweenLooks, nullptr, 0);
  --counter.sleepers;
}

}  // namespace

SharedExchange::SharedExchange(SharedRegion& region, int place, std::vector<int> members, int position)
    : region_(region), place_(place), members_(std::move(members)), position_(position) {}

void SharedExchange::meet() {
  SharedCounter& own = region_.counter(place_, position_);
  // Publishes what this rank has written: the store of the counter comes after the writes (sequentially consistent).
  own.value = ++round_;
  if (own.sleepers > 0) ::syscall(SYS_futex, word_of(own), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (int position = 0; position < static_cast<int>(members_.size()); ++position) {
    if (position != position_) wait_for(position);
  }
  count_exchanged(kBytes);  // the launcher then sees that this rank makes progress, however little it computes
}

void SharedExchange::wait_for(int position) {
  SharedCounter& counter = region_.counter(place_, position);
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    if (has_reached(counter, round_)) return;
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < end);
  const int rank = members_[static_cast<size_t>(position)];
  while (!has_reached(counter, round_)) {
    const bool has_ended = region_.has_ended(rank);  // before the counter: it may have come and then ended
    const uint32_t seen = counter.value;
    if (static_cast<int32_t>(seen - round_) >= 0) return;
    if (has_ended) throw PeerLost(fmt::format("lost another rank: rank {} has ended", rank));
    sleep_until_changed(counter, seen);
  }
}

}  // namespace dsat::trainer
