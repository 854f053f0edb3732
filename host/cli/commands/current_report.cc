// Waits until something has happened and the time between two pages is over, then writes the page outside the lock.
// A page that fails is tried again with the next change.
#include "commands/current_report.h"

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "dsat/base/files.h"
#include "page/page.h"

namespace dsat::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFirst = std::chrono::seconds(2), kBetween = std::chrono::seconds(10);
constexpr int kShare = 100;  // one part of the time for the page

}  // namespace

CurrentReport::Write page_writer(std::function<void(const host::StudyFacts&)> tell) {
  return [tell = std::move(tell)](const std::filesystem::path& dir) {
    try {
      const auto facts = host::read_study_facts(dir);
      if (!facts.ok()) return;
      tell(facts.value());
      write_file_atomically(dir / "report.html", study_page(facts.value()), Durability::renamed);
    } catch (const std::exception&) {  // the study's end says what is wrong
    }
  };
}

CurrentReport::CurrentReport(std::filesystem::path dir, Write write) : dir_(std::move(dir)), write_(std::move(write)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { keep(); });
  } catch (const std::system_error&) {  // the study's end writes the page
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A page needs some KB a trial, and the C library would keep them for the next one. What a thread has freed last is
// given back when the thread ends, so that each page has one of its own where one can be had (ulimit -u).
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
