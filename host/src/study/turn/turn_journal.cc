// Measures a group by the thread's own time, and looks at the file once a second.
#include "study/turn/turn_journal.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "dsat/base/units.h"

namespace dsat::host {
namespace {

// The processor time of this thread.
std::chrono::nanoseconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

TurnJournal::TurnJournal(Journal& journal, Loop& loop, Observer& observer, const std::atomic<int>& stop_level)
    : journal_(journal), loop_(loop), observer_(observer), stop_level_(stop_level) {
  journal_.on_busy = [this](std::chrono::milliseconds waited) { return keeps_waiting(waited); };
}

// A study whose journal is deleted ends: its user wants that, or learns of the mistake now.
void TurnJournal::watch(std::function<void()> on_lost) {
  if (journal_.is_lost()) return on_lost();
  if (!journal_.keeps()) return;
  loop_.at(loop_.now() + kLookForJournal, [this, on_lost = std::move(on_lost)] { watch(on_lost); });
}

bool TurnJournal::is_due(std::chrono::milliseconds delay) {
  const std::chrono::nanoseconds now = thread_time();
  if (delay.count() > 0 && now - group_began_ < delay) return false;
  group_began_ = now;
  return true;
}

void TurnJournal::commit(std::chrono::milliseconds delay) {
  has_lost_group_ = delay.count() > 0;
  journal_.commit();
  has_lost_group_ = false;
}

// Another program writes to the journal. Trials go on meanwhile.
bool TurnJournal::keeps_waiting(std::chrono::milliseconds waited) {
  if (waited >= kSayThatItWaits && !has_reported_waiting_) {
    observer_.on_log(Observer::Severity::warning,
                     fmt::format("{}: another program holds a lock on it, so the study waits for {} at most",
                                 journal_.file().string(), format_duration(kLongestWaitForLock)));
  }
  has_reported_waiting_ = waited >= kSayThatItWaits;
  const int level = stop_level_.load();
  return waited < (level > 1 ? std::chrono::milliseconds(0) : level > 0 ? Journal::kUsualWait : kLongestWaitForLock);
}

}  // namespace dsat::host
