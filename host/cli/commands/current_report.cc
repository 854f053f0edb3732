// Waits for a change and for the end of the time between two pages, then writes the page outside the lock. If writing
// fails, the next change tries again.
#include "commands/current_report.h"

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "commands/report.h"

namespace dsat::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFirst = std::chrono::seconds(2), kBetween = std::chrono::seconds(10);
constexpr int kShare = 100;  // writing pages takes at most 1/kShare of the time

}  // namespace

CurrentReport::Write page_writer(std::function<void(const host::StudyFacts&)> tell) {
  return [tell = std::move(tell)](const std::filesystem::path& dir) {
    try {
      const auto facts = host::read_study_facts(dir);
      if (!facts.ok()) return;
      tell(facts.value());
      write_page_of(facts.value(), Durability::renamed);
    } catch (const std::exception&) {  // reported when the last page is written
    }
  };
}

CurrentReport::CurrentReport(std::filesystem::path dir, Write write) : dir_(std::move(dir)), write_(std::move(write)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { keep(); });
  } catch (const std::system_error&) {  // the page is written once, at the study's end
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A page needs some KB for each trial, and the C library would keep this memory for the next page. It gives the memory
// of a thread back when the thread ends, so each page gets a thread of its own, unless ulimit -u forbids one.
void CurrentReport::write_and_forget() const {
  try {
    std::thread([this] { write_(dir_); }).join();
  } catch (const std::system_error&) {
    write_(dir_);
  }
  malloc_trim(0);
}

CurrentReport::~CurrentReport() { CurrentReport::on_closing(); }

void CurrentReport::on_closing() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CurrentReport::on_trial_started(const host::TrialRecord&) { note(); }
void CurrentReport::on_trial_ended(const host::TrialRecord&) { note(); }

void CurrentReport::note() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stale_ = true;
  }
  changed_.notify_one();
}

void CurrentReport::keep() {
  auto next = Clock::now() + kFirst;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    changed_.wait_until(lock, next, [this] { return ended_; });
    changed_.wait(lock, [this] { return ended_ || stale_; });
    if (ended_) return;
    stale_ = false;
    lock.unlock();
    const auto begin = Clock::now();
    write_and_forget();
    next = Clock::now() + std::max<Clock::duration>(kBetween, kShare * (Clock::now() - begin));
    lock.lock();
  }
}

}  // namespace dsat::cli
