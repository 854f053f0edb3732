// Each kind of line has a function of its own. The picture stacks the lines and leaves out those that a low terminal
// has no room for. The oldest running trials come first.
#include "terminal/search_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dsat/base/units.h"
#include "terminal/format.h"

namespace dsat::cli {
namespace {

using std::chrono::milliseconds;
using Clock = SearchView::Clock;

constexpr size_t kMostRunning = 8;   // lines
constexpr size_t kMostWarnings = 2;  // lines
constexpr size_t kLabelWidth = 10;

std::string label(const char* text) { return fmt::format("{:<{}}", text, kLabelWidth); }

std::string count_text(const SearchView& view) {
  const int done = view.earlier + view.ended;
  return view.lines.max_trials > 0 ? fmt::format("{}/{} trials", done, view.lines.max_trials)
                                   : fmt::format("{} trials", done);
}

std::string left_text(const SearchView& view, Clock::time_point now) {
  const auto left = view.time_left(now);
  if (!left) return "";
  // The estimate has run out while the study still runs.
  return *left < std::chrono::seconds(1) ? ", nearly done" : fmt::format(", about {} left", format_duration(*left));
}

StyledLine bar_line(const SearchView& view, Clock::time_point now, size_t columns, bool drawing) {
  constexpr size_t kLeast = 10, kMost = 40;
  const std::string text = count_text(view) + left_text(view, now);
  const size_t room = columns > text.size() + 3 ? columns - text.size() - 3 : 0;
  if (view.lines.max_trials <= 0 || room < kLeast) return {{text, Colour::bold}};
  const size_t width = std::min(room, kMost);
  const double share = static_cast<double>(view.earlier + view.ended) / view.lines.max_trials;
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  const char* const done = drawing ? "\u2501" : "#";
  const char* const open = drawing ? "\u2500" : ".";
  StyledLine line{{"", Colour::good}, {"", Colour::dim}, {"  " + text, Colour::bold}};
  for (size_t i = 0; i < width; ++i) line[i < full ? 0 : 1].text += i < full ? done : open;
  return line;
}

std::string best_text(const SearchView& view) {
  if (!view.best) return "none yet";
  std::string text = fmt::format("{}, {}, trial {}", format_metric(view.lines.metric, view.best->value),
                                 view.best->where, view.best->trial);
  if (view.own) {
    text += fmt::format(", {} against your own", percent_better(view.best->value, *view.own, view.lines.maximise));
  }
  return text;
}

StyledLine running_line(const SearchView::RunningTrial& running, size_t digits, Clock::time_point now) {
  const host::TrialRecord& trial = running.trial;
  const auto age = std::chrono::duration_cast<milliseconds>(now - running.since);
  StyledLine line{
      {fmt::format("trial {:>{}}  stage {}  micro batch {:>4}  {:>5}", trial.id, digits,
                   or_dash(zero_stage_of(trial.config)), or_dash(micro_batch_of(trial.config)), age_text(age))}};
  std::string rest;
  if (!trial.slots.empty()) rest = one_line(fmt::format("  on {}", fmt::join(trial.slots, ",")));
  if (const std::string purpose = purpose_of(trial); !purpose.empty()) rest += "  " + purpose;
  line.push_back({rest, Colour::dim});
  return line;
}

void add_running(std::vector<StyledLine>& lines, const SearchView& view, Clock::time_point now, size_t room) {
  if (room == 0) return;
  if (view.running.empty()) return lines.push_back({{label("running"), Colour::dim}, {"none", Colour::dim}});
  std::vector<const SearchView::RunningTrial*> oldest;
  for (const auto& [id, running] : view.running) oldest.push_back(&running);
  std::stable_sort(oldest.begin(), oldest.end(), [](const auto* a, const auto* b) { return a->since < b->since; });
  const size_t shown = oldest.size() <= room ? oldest.size() : room - 1;
  const size_t digits = fmt::formatted_size("{}", view.running.rbegin()->first);
  for (size_t i = 0; i < shown; ++i) {
    StyledLine line{{label(i == 0 ? "running" : ""), Colour::dim}};
    const StyledLine trial = running_line(*oldest[i], digits, now);
    line.insert(line.end(), trial.begin(), trial.end());
    lines.push_back(std::move(line));
  }
  if (shown == oldest.size()) return;
  lines.push_back({{label(shown == 0 ? "running" : ""), Colour::dim},
                   {fmt::format("{}{} trials", shown == 0 ? "" : "and ", oldest.size() - shown), Colour::dim}});
}

void add_warnings(std::vector<StyledLine>& lines, const std::vector<std::string>& warnings) {
  const size_t first = warnings.size() > kMostWarnings ? warnings.size() - kMostWarnings : 0;
  for (size_t i = first; i < warnings.size(); ++i) {
    const std::string earlier = i == first && first > 0 ? fmt::format(" ({} earlier ones above)", first) : "";
    lines.push_back({{fmt::format("warning{}: {}", earlier, warnings[i]), Colour::caution}});
  }
}

}  // namespace

std::optional<milliseconds> SearchView::time_left(Clock::time_point now) const {
  std::optional<milliseconds> left;
  const auto until = [&](Clock::time_point end) {
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - now));
  };
  if (ended > 0 && lines.max_trials > 0) {
    left = until(last_end + (last_end - begin) / ended * std::max(0, lines.max_trials - earlier - ended));
  }
  if (time_budget) {
    const milliseconds rest = until(begin + *time_budget);
    left = left ? std::min(*left, rest) : rest;
  }
  return left;
}

std::string age_text(milliseconds age) {
  const int64_t seconds = std::max<int64_t>(0, age.count() / 1000);
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string status_line(const SearchView& view, Clock::time_point now) {
  return fmt::format("{}, {} running{}, best {}", count_text(view), view.running.size(), left_text(view, now),
                     best_text(view));
}

std::vector<StyledLine> picture(const SearchView& view, Clock::time_point now, TerminalSize size, bool drawing) {
  const size_t rows = size.rows > 1 ? size.rows - 1 : 1;
  if (rows < 4) return {{{status_line(view, now)}}};
  std::vector<StyledLine> lines{bar_line(view, now, size.columns, drawing)};
  lines.push_back({{label("best"), Colour::dim}, {best_text(view), Colour::bold}});
  if (const std::string ceilings = view.ceilings.text(); !ceilings.empty()) {
    lines.push_back({{label("fits"), Colour::dim}, {ceilings}});
  }
  std::vector<StyledLine> warnings;
  add_warnings(warnings, view.warnings);
  if (lines.size() + warnings.size() + 1 > rows) warnings.clear();
  add_running(lines, view, now, std::min(kMostRunning, rows - lines.size() - warnings.size()));
  lines.insert(lines.end(), warnings.begin(), warnings.end());
  return lines;
}

}  // namespace dsat::cli
