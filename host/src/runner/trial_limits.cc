// A running trial has three limits: its timeout (--trial-timeout), the time without output (--no-progress-timeout), and
// the size of its output. A trial that passes one is ended, and the limit is the reason of its outcome.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "dsat/base/files.h"
#include "dsat/base/units.h"
#include "dsat/host/environment.h"
#include "runner/output_limit.h"
#include "runner/trial_logs.h"
#include "runner/trial_runner.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> find_lock(const fs::path& folder, fs::file_time_type before, int depth) {
  std::error_code error;
  const fs::path lock = folder / "lock";
  const fs::file_time_type written = fs::last_write_time(lock, error);
  if (!error && written < before) return lock;
  if (depth == 0) return std::nullopt;
  fs::directory_iterator entries(folder, error);
  if (error) return std::nullopt;
  for (const fs::directory_entry& entry : entries) {
    if (!entry.is_directory(error)) continue;
    if (auto found = find_lock(entry.path(), before, depth - 1)) return found;
  }
  return std::nullopt;
}

// Returns the lock that a killed build of a PyTorch operator left, if it is older than `file`: ROOT/OPERATOR/lock or
// ROOT/VERSIONS/OPERATOR/lock, in TORCH_EXTENSIONS_DIR or below ~/.cache/torch_extensions. PyTorch builds an operator
// at its first use, one process at a time (torch.utils.file_baton): a process that finds the lock waits until it is
// gone.
std::optional<fs::path> build_lock_before(const fs::path& file, const Environment& environment) {
  std::error_code error;
  const fs::file_time_type before = fs::last_write_time(file, error);
  if (error) return std::nullopt;
  constexpr int kDepth = 2;
  if (const auto named = get_variable(environment, "TORCH_EXTENSIONS_DIR")) return find_lock(*named, before, kDepth);
  const auto home = get_variable(environment, "HOME");
  return home ? find_lock(fs::path(*home) / ".cache/torch_extensions", before, kDepth) : std::nullopt;
}

}  // namespace

void TrialRunner::watch_limits(uint64_t id, LiveTrial& trial) {
  const auto now = loop_.now();
  trial.last_progress = now;
  trial.progress = progress_mark(trial.facts.trial_dir);
  // A trial with more steps gets proportionally more time.
  const auto limit = options_.trial_timeout * (trial.facts.end_profile_step + 1) / (options_.end_profile_step + 1);
  trial.timers.push_back(loop_.at(now + limit, [this, id, limit] {
    time_out(id, fmt::format("ran longer than {} (--trial-timeout)", format_duration(limit)));
  }));
  look_for_progress(id);
  look_at_output(id);
}

// Its output grows by gigabytes within the time in which progress is looked for. It gets no time to end, since it would
// print on.
void TrialRunner::look_at_output(uint64_t id) {
  LiveTrial& trial = running_.at(id);
  if (trial.ending) return;
  const fs::path& folder = trial.facts.trial_dir;
  const uint64_t bytes = output_bytes(folder);
  if (std::string why = why_too_much(bytes, free_bytes(folder)); !why.empty()) {
    return time_out(id, std::move(why), true);
  }
  const RunFacts& facts = trial.facts;
  const bool is_news = std::exchange(trial.output_bytes, bytes) != bytes;
  if (is_news && !facts.metric_pattern.empty() && !facts.model_info && read_printed_metric(facts, false).is_full) {
    trial.facts.window_is_full = true;
    return end_processes(id, trial, false);
  }
  constexpr std::chrono::milliseconds kInterval{500};
  trial.timers.push_back(loop_.at(loop_.now() + kInterval, [this, id] { look_at_output(id); }));
}

// A script that has measured and then hangs at exit would hold its devices until the limit, and so would the ranks that
// wait for one that ran out of memory.
std::chrono::milliseconds TrialRunner::patience_with(const LiveTrial& trial) const {
  std::error_code error;
  const bool has_result = fs::exists(trial.facts.trial_dir / kMetricsFile, error) ||
                          fs::exists(trial.facts.trial_dir / kModelInfoFile, error);
  return has_result || trial.ran_short ? std::min(options_.no_progress_timeout, options_.patience_after_result)
                                       : options_.no_progress_timeout;
}

void TrialRunner::look_for_progress(uint64_t id) {
  LiveTrial& trial = running_.at(id);
  if (trial.ending) return;
  const auto now = loop_.now();
  const uint64_t progress = progress_mark(trial.facts.trial_dir);
  if (progress != trial.progress) {
    trial.progress = progress;
    trial.last_progress = now;
    trial.is_silence_read = trial.ran_short = false;
  } else if (!std::exchange(trial.is_silence_read, true)) {
    trial.ran_short = find_shortage(read_trial_logs(trial.facts), trial.facts.on_processors).is_there();
  } else if (now - trial.last_progress >= patience_with(trial)) {
    std::string reason =
        fmt::format("no new output or file for {} (--no-progress-timeout)", format_duration(patience_with(trial)));
    if (const auto lock = build_lock_before(trial.facts.trial_dir / kCommandFile, options_.environment)) {
      reason +=
          fmt::format("; it may wait for the lock {}, which an ended build left: remove this file", lock->string());
    }
    return time_out(id, std::move(reason));
  }
  // The check is late by a quarter of the limit at most, and rare enough to cost nothing.
  constexpr std::chrono::milliseconds kLongest{10000}, kShortest{5};
  const auto interval = std::clamp(patience_with(trial) / 4, kShortest, kLongest);
  trial.timers.push_back(loop_.at(now + interval, [this, id] { look_for_progress(id); }));
}

void TrialRunner::time_out(uint64_t id, std::string reason, bool at_once) {
  LiveTrial& trial = running_.at(id);
  if (trial.ending || engine_->has_ended(id)) return;
  trial.facts.timed_out = std::move(reason);
  end_processes(id, trial, at_once);
}

}  // namespace dsat::host
