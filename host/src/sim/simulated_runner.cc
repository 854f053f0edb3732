// Gets a trial's answer from the surface at its start. A timer in virtual time ends the trial.
#include "sim/simulated_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/units.h"
#include "dsat/config/json.h"
#include "dsat/random.h"

namespace dsat::host {
namespace {

// FNV-1a, which gives the same value on every machine, unlike std::hash.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Returns why metrics cannot be stored in a journal, as no result file of a real trial could hold them; empty: they
// can.
std::string why_unusable(const Json& metrics) {
  if (!metrics.is_object()) {
    return fmt::format("the simulation's metrics are {}: a JSON object is needed", config::text_of(metrics));
  }
  for (const auto& [name, value] : metrics.items()) {
    if (!value.is_number_float() || std::isfinite(value.get<double>())) continue;
    return fmt::format("the simulation's {} is {}: a finite number is needed", name, value.get<double>());
  }
  return "";
}

// Longer than any timeout, and no overflow of the clock.
constexpr double kLongestSeconds = 1e9;

}  // namespace

SimulatedRunner::SimulatedRunner(Loop& loop, SimulatedRunnerOptions options)
    : loop_(loop), options_(std::move(options)) {
  const int usable = std::min(options_.slots, options_.max_slots.value_or(options_.slots));
  const int groups = usable / options_.slots_per_trial;
  for (int group = 0; group < groups; ++group) free_groups_.insert(group);
}

SimulatedRunner::~SimulatedRunner() {
  for (const auto& [id, trial] : running_) loop_.cancel(trial.timer);
}

void SimulatedRunner::start(const TrialSpec& spec) {
  if (free_groups_.empty()) throw internal_error(fmt::format("trial {} was started without a free slot", spec.id));
  const uint64_t seed = mix64(mix64(options_.seed ^ hash_of(spec.identity)) ^ spec.earlier_runs);
  Loop::Clock::duration length{};
  StartedTrial trial;
  try {
    Json further;
    if (spec.further_steps > 0) {
      further = spec.config;
      further["autotuning"]["end_profile_step"] = options_.end_profile_step + spec.further_steps;
    }
    const Json& config = spec.further_steps > 0 ? further : spec.config;
    const SimulatedTrial asked{config, spec.model_info, options_.slots_per_trial, seed};
    trial.end = end_of(spec, options_.surface->run(asked), length);
  } catch (...) {
    throw internal_error(fmt::format("the simulation of trial {}: {}", spec.id, status_of_caught().message()));
  }
  trial.group = *free_groups_.begin();
  free_groups_.erase(free_groups_.begin());
  const uint64_t id = spec.id;
  loop_.at(loop_.now(), [this, id, attempt = spec.attempt] { report_start(id, attempt); });
  trial.timer = loop_.at(loop_.now() + length, [this, id] { report_end(id); });
  running_.emplace(id, std::move(trial));
}

TrialEnd SimulatedRunner::end_of(const TrialSpec& spec, SimulatedRun run, Loop::Clock::duration& length) const {
  if (run.outcome == Outcome::completed) {
    if (std::string why = why_unusable(run.metrics); !why.empty()) {
      run.outcome = Outcome::failed;
      run.reason = std::move(why);
    }
  }
  TrialEnd end;
  end.id = spec.id;
  end.attempt = spec.attempt;
  end.outcome = run.outcome;
  end.reason = std::move(run.reason);
  end.peak_bytes = run.peak_bytes;
  if (end.peak_bytes) end.peak_source = kPeakOfMetrics;
  end.device_memory_bytes = run.device_memory_bytes;
  if (run.outcome == Outcome::completed) {
    end.metrics = std::move(run.metrics);
    if (!spec.model_info) end.curve = std::move(run.curve);
    end.exit_code = 0;
    end.step = static_cast<uint64_t>(options_.end_profile_step);
    if (spec.model_info && run.device_memory_bytes) end.metrics["device_memory"] = *run.device_memory_bytes;
  } else {
    end.exit_code = 1;
    end.last_line = end.reason;
  }
  if (!(run.seconds >= 0)) throw Error(fmt::format("its duration is {} s", run.seconds));
  const std::chrono::duration<double> seconds(std::min(run.seconds, kLongestSeconds));
  length = std::chrono::duration_cast<Loop::Clock::duration>(seconds);
  const int steps = options_.end_profile_step + 1;
  const auto limit = options_.trial_timeout * (steps + spec.further_steps) / steps;
  if (length > limit) {
    length = limit;
    end.outcome = Outcome::timed_out;
    end.reason = fmt::format("ran longer than {} (--trial-timeout)", format_duration(limit));
    end.metrics = Json();
  }
  return end;
}

// Returns "8-15", since a list of thousands of devices would be too long.
std::string SimulatedRunner::slots_of(int group) const {
  const int first = group * options_.slots_per_trial;
  const int last = first + options_.slots_per_trial - 1;
  return last > first ? fmt::format("{}-{}", first, last) : fmt::to_string(first);
}

void SimulatedRunner::report_start(uint64_t id, uint32_t attempt) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  if (on_started) on_started({id, attempt, {slots_of(it->second.group)}, loop_.utc_now()});
}

void SimulatedRunner::report_end(uint64_t id) {
  const auto it = running_.find(id);
  // The trial leaves the map first, because on_ended may start the next trial.
  StartedTrial trial = std::move(it->second);
  running_.erase(it);
  free_groups_.insert(trial.group);
  trial.end.ended_at = loop_.utc_now();
  if (on_ended) on_ended(trial.end);
}

void SimulatedRunner::stop(uint64_t id, bool) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  StartedTrial& trial = it->second;
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
