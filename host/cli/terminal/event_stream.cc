// The control thread makes the lines, and another thread writes them.
#include "terminal/event_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "dsat/config/json.h"
#include "dsat/error.h"

namespace dsat::cli {
namespace {

constexpr int kVersion = 1;  // raised if a member changes its meaning or goes; new events and members do not raise it

const char* name_of(host::Observer::Severity severity) {
  switch (severity) {
    case host::Observer::Severity::debug:
      return "debug";
    case host::Observer::Severity::info:
      return "info";
    case host::Observer::Severity::warning:
      return "warning";
    default:
      return "error";
  }
}

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

EventStream::EventStream(int fd, host::Study& study) : fd_(fd), study_(study) {
  const Json& settings = study.settings();
  add({{"event", "start"},
       {"version", kVersion},
       {"dir", study.dir().string()},
       {"metric", settings.value("metric", Json())},
       {"max_trials", settings.value("max_trials", Json())}});
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

void EventStream::put(const char* event, const char* member, Json value) {
  add({{"event", event}, {member, std::move(value)}});
}

void EventStream::add(const Json& line) {
  std::string text = config::text_of(line) + "\n";
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(text));
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

void EventStream::on_log(Severity severity, std::string_view message) {
  add({{"event", "log"}, {"severity", name_of(severity)}, {"message", std::string(message)}});
}
void EventStream::on_trial_submitted(const host::TrialRecord& trial) { put("submitted", "trial", to_json(trial)); }
void EventStream::on_trial_started(const host::TrialRecord& trial) { put("started", "trial", to_json(trial)); }
void EventStream::on_trial_ended(const host::TrialRecord& trial) { put("ended", "trial", to_json(trial)); }
void EventStream::on_profile(const Json& profile) { put("profile", "profile", profile); }
void EventStream::on_best(const host::BestRecord& best) { put("best", "best", to_json(best)); }

}  // namespace dsat::cli
