// The control thread makes the lines, and another thread writes them.
#include "events/event_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "dsat/error.h"

namespace dsat::cli {
namespace {

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

void check_event_descriptor(int64_t fd) {
  const int flags = fcntl(static_cast<int>(fd), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) {
    throw Error(
        fmt::format("--events {}: this descriptor is not open for writing; a shell opens it with {}>FILE", fd, fd));
  }
  fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
}

EventStream::EventStream(int fd, host::Study& study)
    : EventLines([this](std::string line) { add(std::move(line)); }), fd_(fd), study_(study) {
  start(study);
  writing_ = std::thread([this] { write_all(); });
}

EventStream::~EventStream() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  writing_.join();
}

void EventStream::add(std::string line) {
  line += '\n';
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  changed_.notify_one();
}

void EventStream::write_all() {
  bool reader = true;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return done_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    if (reader && !write_whole(fd_, line)) {
      reader = false;
      study_.request_stop();
    }
    lock.lock();
  }
}

}  // namespace dsat::cli
