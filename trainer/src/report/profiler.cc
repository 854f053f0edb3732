// Records LibTorch's operations through a global callback and writes them as Chrome trace events.
// Callbacks are plain functions, so the recording is one object of the process.
#include "dsat/trainer/profiler.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/device_memory.h"
#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

struct Event {
  std::string name;
  bool backward = false;
  pid_t thread = 0;
  double start_us = 0, duration_us = 0;
  uint64_t bytes_before = 0, bytes_after = 0;  // in use on the device
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
  uint64_t bytes = memory_in_use();
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction&) { return std::make_unique<Start>(); }

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* const start = static_cast<Start*>(context);
  Event event{function.name(),      function.scope() == at::RecordScope::BACKWARD_FUNCTION,
              ::gettid(),           start->us,
              now_us() - start->us, start->bytes,
              memory_in_use()};
  const std::lock_guard<std::mutex> lock(recording().mutex);
  recording().events.push_back(std::move(event));
}

Json operation_of(const Event& event) {
  return {{"ph", "X"},
          {"cat", event.backward ? "backward" : "operation"},
          {"name", event.name},
          {"pid", ::getpid()},
          {"tid", event.thread},
          {"ts", event.start_us},
          {"dur", event.duration_us}};
}

int64_t signed_difference(uint64_t after, uint64_t before) {
  return static_cast<int64_t>(after) - static_cast<int64_t>(before);
}

void check(const ProfilerOptions& options) {
  const auto& asked = options.activities;
  if (std::find(asked.begin(), asked.end(), ProfilerActivity::cuda) != asked.end()) {
    throw Error(
        "set_profiler: ProfilerActivity::cuda: kernels are not recorded here; leave it out, or run dsat-trial under "
        "`nsys profile`");
  }
  if (asked.empty()) throw Error("set_profiler: no activities, so nothing to record: give ProfilerActivity::cpu");
}

void check(const ProfilerSchedule& s) {
  if (s.wait >= 0 && s.warmup >= 0 && s.active >= 1 && s.repeat >= 0) return;
  throw Error(fmt::format(
      "set_profiler(wait {}, warmup {}, active {}, repeat {}): expected steps of 0 or more, at least one of "
      "them active",
      s.wait, s.warmup, s.active, s.repeat));
}

}  // namespace

Profiler::Profiler(std::filesystem::path folder, std::string name, ProfilerSchedule schedule, ProfilerOptions options)
    : folder_(std::move(folder)), name_(std::move(name)), schedule_(schedule), profile_memory_(options.profile_memory) {
  check(schedule_);
  check(options);
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
      events.push_back(operation_of(event));
      if (!profile_memory_) continue;
      events.back()["args"] = {{"bytes", signed_difference(event.bytes_after, event.bytes_before)}};
      events.push_back({{"ph", "C"},
                        {"name", "memory"},
                        {"pid", ::getpid()},
                        {"ts", event.start_us + event.duration_us},
                        {"args", {{"bytes", event.bytes_after}}}});
    }
  }
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const auto file = folder_ / fmt::format("{}.step{}.trace.json", name_, step);
  const Json trace{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  write_file_atomically(file, trace.dump());
}

}  // namespace dsat::trainer
