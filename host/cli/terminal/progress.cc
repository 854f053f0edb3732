// Keeps the view of the search up to date under a lock. A thread draws it five times a second, and the screen skips
// frames that show nothing new.
#include "terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dsat/base/secrets.h"
#include "terminal/format.h"
#include "terminal/profile_lines.h"
#include "terminal/signals.h"
#include "terminal/times.h"

namespace dsat::cli {
namespace {

constexpr std::chrono::milliseconds kFrameTime{200};
// A simulation ends trials faster than anybody reads: at most this many of their lines are kept between two frames.
constexpr size_t kMostPending = 100;

Style style_for(const Console& console, bool quiet) {
  Style style = style_of(console.text());
  if (quiet) style.live = false;
  return style;
}

SearchView view_for(const ProgressSettings& settings) {
  SearchView view;
  view.lines = {settings.metric, settings.maximise, settings.max_trials, settings.verbose};
  view.time_budget = settings.time_budget;
  return view;
}

// A trial may be older than this program. A simulated time lies in another year and has no age.
std::chrono::microseconds age_of(const host::TrialRecord& trial) {
  using std::chrono::microseconds;
  const auto now = std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch());
  const microseconds age = now - microseconds(microseconds_of(trial.started_at));
  constexpr std::chrono::hours kLongest{24 * 365};
  return age > microseconds(0) && age < kLongest ? age : microseconds(0);
}

SearchView::Best best_of(const host::BestRecord& best) {
  return {best.trial, best.metric,
          fmt::format("stage {}, micro batch {}", or_dash(zero_stage_of(best.config)),
                      or_dash(micro_batch_of(best.config)))};
}

}  // namespace

LiveProgress::LiveProgress(Console& console, const ProgressSettings& settings)
    : console_(console),
      quiet_(settings.quiet),
      style_(style_for(console, settings.quiet)),
      view_(view_for(settings)),
      screen_(style_.colour) {
  if (style_.live) drawing_ = std::thread([this] { draw_until_done(); });
}

LiveProgress::~LiveProgress() {
  if (!drawing_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  drawing_.join();
}

void LiveProgress::draw_until_done() {
  std::unique_lock lock(mutex_);
  while (!done_) {
    draw_frame(lock, false);
    changed_.wait_for(lock, kFrameTime, [this] { return done_; });
  }
  draw_frame(lock, true);
}

// The lock is free while the terminal takes the bytes.
void LiveProgress::draw_frame(std::unique_lock<std::mutex>& lock, bool last) {
  const TerminalSize size{static_cast<size_t>(console_.text().columns()), static_cast<size_t>(console_.text().rows())};
  std::vector<StyledLine> above;
  if (const size_t dropped = std::exchange(dropped_, 0); dropped > 0) {
    above.push_back({{fmt::format("... {} more lines: dsat-host show has all trials", dropped), Colour::dim}});
  }
  above.insert(above.end(), pending_.begin(), pending_.end());
  pending_.clear();
  std::vector<StyledLine> block;
  if (!last) block = picture(view_, SearchView::Clock::now(), size, style_.drawing);
  lock.unlock();
  if (continued_since_last_asked()) screen_.forget();
  console_.text().write(screen_.update(above, block, size));
  lock.lock();
}

void LiveProgress::print(StyledLine line) {
  if (!style_.live) return console_.line(plain_text(line));
  pending_.push_back(std::move(line));
  if (pending_.size() <= kMostPending) return;
  pending_.pop_front();
  ++dropped_;
}

void LiveProgress::count_earlier(const host::StudyRecord& record) {
  const std::lock_guard lock(mutex_);
  view_.ceilings.take_profile(record.profile);
  for (const host::TrialRecord& trial : record.trials) {
    if (!trial.outcome) continue;  // a trial counts once it has ended
    view_.earlier += trial.started();
    take_result(trial);
  }
  if (record.best) view_.best = best_of(*record.best);
}

void LiveProgress::take_result(const host::TrialRecord& trial) {
  view_.ceilings.take_trial(trial);
  const std::optional<double> value = value_of(trial, view_.lines.metric);
  if (!value || trial.duplicate_of) return;
  if (trial.kind == host::TrialKind::baseline && !view_.own) view_.own = value;
  const bool better = !best_value_ || (view_.lines.maximise ? *value > *best_value_ : *value < *best_value_);
  if (better) best_value_ = value;
}

void LiveProgress::take_own(const host::StudyFacts& facts) {
  const std::lock_guard lock(mutex_);
  if (!view_.own && facts.baseline) view_.own = facts.trials.at(*facts.baseline).value;
}

void LiveProgress::on_log(Severity severity, std::string_view message) {
  if (severity == Severity::error) return errors_.push_back(one_line(message));
  const std::lock_guard lock(mutex_);
  if (severity == Severity::debug || (quiet_ && severity == Severity::info)) return;
  std::string text = one_line(mask_secrets(message));
  if (severity != Severity::warning) return print({{std::move(text)}});
  print({{"warning: " + text, Colour::caution}});
  if (std::find(view_.warnings.begin(), view_.warnings.end(), text) == view_.warnings.end()) {
    view_.warnings.push_back(std::move(text));
  }
}

void LiveProgress::on_trial_started(const host::TrialRecord& trial) {
  const std::lock_guard lock(mutex_);
  view_.running[trial.id] = {trial, SearchView::Clock::now() - age_of(trial)};
}

void LiveProgress::on_trial_ended(const host::TrialRecord& trial) {
  const std::lock_guard lock(mutex_);
  if (trial.started()) ++view_.ended;
  view_.running.erase(trial.id);
  view_.last_end = SearchView::Clock::now();
  if (!quiet_) print(trial_line(trial, best_value_, view_.lines));
  take_result(trial);
}

void LiveProgress::on_profile(const Json& profile) {
  const std::lock_guard lock(mutex_);
  view_.ceilings.take_profile(profile);
  if (quiet_) return;
  for (const std::string& line : profile_lines(profile)) print({{line}});
}

void LiveProgress::on_best(const host::BestRecord& best) {
  const std::lock_guard lock(mutex_);
  view_.best = best_of(best);
}

std::string LiveProgress::status() const {
  const std::lock_guard lock(mutex_);
  return status_line(view_, SearchView::Clock::now());
}

}  // namespace dsat::cli
