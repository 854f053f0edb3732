// A thread writes the process's CPU time, bytes moved and current wait to the launcher, twice a second.
// Its own CPU time does not count as motion.
#include "watch/heartbeat.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <utility>

namespace dsat::trainer {
namespace {

constexpr char kMark = 'h';
// Between two beats; Gloo's idle threads use less, and so does the beat itself.
constexpr int64_t kLeastCpuUs = 10000;
constexpr int64_t kLeastIoBytes = 1024;

struct Waiting {
  std::mutex mutex;
  std::string operation;
};

Waiting& waiting() {
  static Waiting* const instance = new Waiting;
  return *instance;
}

int64_t microseconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1000000 + time.tv_nsec / 1000;
}

std::atomic<int64_t> exchanged_bytes{0};

int64_t io_bytes() {
  std::ifstream in("/proc/self/io");
  int64_t total = exchanged_bytes;
  std::string key;
  for (int64_t value; in >> key >> value;) {
    if (key == "rchar:" || key == "wchar:") total += value;
  }
  return total;
}

// Asks without taking a child's end away from who waits for it. One that has ended and that nobody has waited for yet
// hides the others.
bool has_running_child() {
  siginfo_t ended{};
  return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

}  // namespace

WaitingIn::WaitingIn(std::string operation) {
  const std::lock_guard<std::mutex> lock(waiting().mutex);
  waiting().operation = std::move(operation);
}

WaitingIn::~WaitingIn() {
  const std::lock_guard<std::mutex> lock(waiting().mutex);
  waiting().operation.clear();
}

void count_exchanged(int64_t bytes) { exchanged_bytes += bytes; }

Beat current_beat() {
  Beat beat;
  beat.cpu_us = microseconds_of(CLOCK_PROCESS_CPUTIME_ID) - microseconds_of(CLOCK_THREAD_CPUTIME_ID);
  beat.io_bytes = io_bytes();
  beat.has_child = has_running_child();
  const std::lock_guard<std::mutex> lock(waiting().mutex);
  beat.waiting_in = waiting().operation;
  return beat;
}

std::string to_line(const Beat& beat) {
  return fmt::format("{}{} {} {} {}", kMark, beat.cpu_us, beat.io_bytes, beat.has_child ? 1 : 0, beat.waiting_in);
}

std::optional<Beat> parse_beat(const std::string& line) {
  if (line.empty() || line.front() != kMark) return std::nullopt;
  std::istringstream in(line.substr(1));
  Beat beat;
  if (!(in >> beat.cpu_us >> beat.io_bytes >> beat.has_child)) return std::nullopt;
  in.get();
  std::getline(in, beat.waiting_in);
  return beat;
}

bool has_moved(const Beat& before, const Beat& after) {
  if (after.has_child && after.waiting_in.empty()) return true;
  return after.cpu_us - before.cpu_us >= kLeastCpuUs || after.io_bytes - before.io_bytes >= kLeastIoBytes;
}

Heartbeat::Heartbeat(int fd) : thread_([this, fd] { run(fd); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

void Heartbeat::run(int fd) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_.wait_for(lock, kBeatInterval, [this] { return is_ending_; })) {
    const std::string line = to_line(current_beat()).substr(0, 500) + "\n";
    // A launcher that is gone takes this process with it.
    if (::write(fd, line.data(), line.size()) < 0) return;
  }
}

}  // namespace dsat::trainer
