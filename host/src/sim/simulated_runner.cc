#include "sim/simulated_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dsat/base/units.h"
#include "dsat/random.h"

namespace dsat::host {
namespace {

// FNV-1a. The same on every machine, unlike std::hash.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Far beyond any timeout, and no overflow of the clock.
constexpr double kLongestSeconds = 1e9;

}  // namespace

SimRunner::SimRunner(Loop& loop, SimRunnerOptions options) : loop_(loop), options_(std::move(options)) {
  const int slots = static_cast<int>(options_.slots.size());
  const int lanes = std::min(slots, options_.max_slots.value_or(slots)) / options_.slots_per_trial;
  for (int lane = 0; lane < lanes; ++lane) free_lanes_.insert(lane);
}

SimRunner::~SimRunner() {
  for (const auto& [id, trial] : running_) loop_.cancel(trial.timer);
}

Status SimRunner::start(const TrialSpec& spec) {
  if (room() < 1) return Status::internal("trial " + std::to_string(spec.id) + " was started without a free slot");
  const uint64_t seed = mix64(mix64(options_.seed ^ hash_of(spec.identity)) ^ spec.earlier_runs);
  Loop::Clock::duration length{};
  Running trial;
  try {
    const SimulatedTrial asked{spec.config, spec.model_info, options_.slots_per_trial, seed};
    trial.end = end_of(spec, options_.surface->run(asked), length);
  } catch (const std::exception& e) {
    return Status::internal("the simulation of trial " + std::to_string(spec.id) + ": " + e.what());
  }
  trial.lane = *free_lanes_.begin();
  free_lanes_.erase(free_lanes_.begin());
  const uint64_t id = spec.id;
  loop_.at(loop_.now(), [this, id, attempt = spec.attempt] { report_start(id, attempt); });
  trial.timer = loop_.at(loop_.now() + length, [this, id] { report_end(id); });
  running_.emplace(id, std::move(trial));
  return {};
}

TrialEnd SimRunner::end_of(const TrialSpec& spec, SimulatedRun run, Loop::Clock::duration& length) const {
  TrialEnd end;
  end.id = spec.id;
  end.attempt = spec.attempt;
  end.outcome = run.outcome;
  end.reason = std::move(run.reason);
  end.peak_bytes = run.peak_bytes;
  end.device_memory_bytes = run.device_memory_bytes;
  if (run.outcome == Outcome::completed) {
    end.metrics = std::move(run.metrics);
    end.exit_code = 0;
    end.step = options_.end_profile_step;
    if (spec.model_info && run.device_memory_bytes) end.metrics["device_memory"] = *run.device_memory_bytes;
  } else {
    end.exit_code = 1;
    end.last_line = end.reason;
  }
  if (!(run.seconds >= 0)) throw Error("its length is " + std::to_string(run.seconds) + " s");
  const std::chrono::duration<double> seconds(std::min(run.seconds, kLongestSeconds));
  length = std::chrono::duration_cast<Loop::Clock::duration>(seconds);
  if (length > options_.trial_timeout) {
    length = options_.trial_timeout;
    end.outcome = Outcome::timed_out;
    end.reason = "ran longer than " + format_duration(options_.trial_timeout) + " (--trial-timeout)";
    end.metrics = Json();
  }
  return end;
}

// "8-15": of thousands of devices nobody wants a list.
std::string SimRunner::slots_of(int lane) const {
  const int first = lane * options_.slots_per_trial;
  const int last = first + options_.slots_per_trial - 1;
  return std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
}

void SimRunner::report_start(uint64_t id, uint32_t attempt) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  if (on_started) on_started({id, attempt, {slots_of(it->second.lane)}, loop_.utc_now()});
}

void SimRunner::report_end(uint64_t id) {
  const auto it = running_.find(id);
  // Out of the map first: what is told of this end may start the next trial.
  Running trial = std::move(it->second);
  running_.erase(it);
  free_lanes_.insert(trial.lane);
  trial.end.ended_at = loop_.utc_now();
  if (on_ended) on_ended(trial.end);
}

void SimRunner::stop(uint64_t id, bool) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  Running& trial = it->second;
  loop_.cancel(trial.timer);
  TrialEnd end;
  end.id = id;
  end.attempt = trial.end.attempt;
  end.outcome = Outcome::stopped;
  end.reason = "stopped";
  end.term_signal = 15;
  trial.end = std::move(end);
  trial.timer = loop_.at(loop_.now(), [this, id] { report_end(id); });
}

}  // namespace dsat::host
