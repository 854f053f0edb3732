// Records LibTorch's operations through a global callback and writes them as Chrome trace events.
// Callbacks are plain functions, so the recording is one object of the process.
#include "dsat/trainer/profiler.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

struct Event {
  std::string name;
  bool backward = false;
  pid_t thread = 0;
  double start_us = 0, duration_us = 0;
};

// What the recorder saw; backward runs on threads of LibTorch's own.
struct Recording {
  std::mutex mutex;
  std::vector<Event> events;
};

// Callbacks of LibTorch are plain functions, so there is one recording in a process.
Recording& recording() {
  static Recording instance;
  return instance;
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Start : at::ObserverContext {
  double us = now_us();
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction&) { return std::make_unique<Start>(); }

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* const start = static_cast<Start*>(context);
  Event event{function.name(), function.scope() == at::RecordScope::BACKWARD_FUNCTION, ::gettid(), start->us,
              now_us() - start->us};
  const std::lock_guard<std::mutex> lock(recording().mutex);
  recording().events.push_back(std::move(event));
}

void check(const ProfilerSchedule& s) {
  if (s.wait >= 0 && s.warmup >= 0 && s.active >= 1 && s.repeat >= 0) return;
  throw Error(fmt::format(
      "set_profiler(wait {}, warmup {}, active {}, repeat {}): expected steps of 0 or more, at least one of "
      "them active",
      s.wait, s.warmup, s.active, s.repeat));
}

}  // namespace

Profiler::Profiler(std::filesystem::path folder, std::string name, ProfilerSchedule schedule)
    : folder_(std::move(folder)), name_(std::move(name)), schedule_(schedule) {
  check(schedule_);
  enter(state_at(0));
}

Profiler::~Profiler() { enter(State::waiting); }

Profiler::State Profiler::state_at(int64_t step) const {
  const int64_t cycle = schedule_.wait + schedule_.warmup + schedule_.active;
  const int64_t at = step % cycle;
  if (at < schedule_.wait || (schedule_.repeat > 0 && step >= schedule_.repeat * cycle)) return State::waiting;
  return at < schedule_.wait + schedule_.warmup ? State::warming_up : State::recording;
}

void Profiler::step() {
  const bool ends =
      state_ == State::recording && (steps_ + 1) % (schedule_.wait + schedule_.warmup + schedule_.active) == 0;
  if (ends) write(steps_);
  const State next = state_at(++steps_);
  if (ends || next != state_) enter(next);
}

// Begins with an empty recording.
void Profiler::enter(State state) {
  if (state == State::waiting && handle_ != 0) {
    at::removeCallback(std::exchange(handle_, 0));
  } else if (state != State::waiting && handle_ == 0) {
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(on_start, on_end)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  }
  const std::lock_guard<std::mutex> lock(recording().mutex);
  recording().events.clear();
  state_ = state;
}

void Profiler::write(int64_t step) const {
  Json events = Json::array();
  {
    const std::lock_guard<std::mutex> lock(recording().mutex);
    for (const Event& event : recording().events) {
      events.push_back({{"ph", "X"},
                        {"cat", event.backward ? "backward" : "operation"},
                        {"name", event.name},
                        {"pid", ::getpid()},
                        {"tid", event.thread},
                        {"ts", event.start_us},
                        {"dur", event.duration_us}});
    }
  }
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const auto file = folder_ / fmt::format("{}.step{}.trace.json", name_, step);
  const Json trace{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  write_file_atomically(file, trace.dump());
}

}  // namespace dsat::trainer
