#include "comm/shared_exchange.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <string>
#include <utility>

#include "dsat/trainer/comm.h"
#include "watch/heartbeat.h"

namespace dsat::trainer {
namespace {

// Ranks that compute the same mostly meet within this time, and to sleep and be woken takes as long as a part of it.
// Others may run meanwhile.
constexpr std::chrono::microseconds kAwake{200};
constexpr timespec kBetweenLooks{0, 100'000'000};  // for ranks that have ended

bool has_reached(const SharedCounter& counter, uint32_t round) {
  return static_cast<int32_t>(counter.value.load() - round) >= 0;
}

// The kernel's own: it works on memory that processes share.
uint32_t* word_of(SharedCounter& counter) { return reinterpret_cast<uint32_t*>(&counter.value); }

void sleep_until_changed(SharedCounter& counter, uint32_t seen) {
  ++counter.sleepers;
  ::syscall(SYS_futex, word_of(counter), FUTEX_WAIT, seen, &kBetweenLooks, nullptr, 0);
  --counter.sleepers;
}

}  // namespace

Exchange::Exchange(SharedRegion& region, int place, std::vector<int> members, int position)
    : region_(region), place_(place), members_(std::move(members)), position_(position) {}

void Exchange::meet() {
  SharedCounter& own = region_.counter(place_, position_);
  own.value = ++round_;
  if (own.sleepers > 0) ::syscall(SYS_futex, word_of(own), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (int position = 0; position < static_cast<int>(members_.size()); ++position) {
    if (position != position_) wait_for(position);
  }
  count_exchanged(kBytes);  // a rank that meets others moves, however little it computes
}

void Exchange::wait_for(int position) {
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
    if (has_ended) throw PeerLost("lost another rank: rank " + std::to_string(rank) + " has ended");
    sleep_until_changed(counter, seen);
  }
}

}  // namespace dsat::trainer
