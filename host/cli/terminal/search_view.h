// The state of a running search, and the picture of it that a terminal shows.
//
// Threading: plain values and pure functions. Errors: none.
#ifndef DSAT_CLI_TERMINAL_SEARCH_VIEW_H_
#define DSAT_CLI_TERMINAL_SEARCH_VIEW_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "terminal/ceilings.h"
#include "terminal/screen.h"
#include "terminal/style.h"
#include "terminal/trial_line.h"

namespace dsat::cli {

struct SearchView {
  using Clock = std::chrono::steady_clock;

  struct RunningTrial {
    host::TrialRecord trial;
    Clock::time_point since;
  };
  struct Best {
    uint64_t trial = 0;
    double value = 0;
    std::string where;  // "stage 2, micro batch 8"
  };

  TrialLineSettings lines;
  std::optional<std::chrono::milliseconds> time_budget;
  Clock::time_point begin = Clock::now(), last_end = begin;
  int earlier = 0;                      // trials that ended before this program resumed the study
  int ended = 0;                        // trials that have ended since then
  std::map<uint64_t, RunningTrial> running;  // by id: a trial may start more than once
  std::optional<Best> best;
  std::optional<double> own;  // the metric of the user's own configuration
  Ceilings ceilings;
  std::vector<std::string> warnings;  // without duplicates

  // The time left by the pace of the trials so far and by the time budget; nullopt: unknown.
  std::optional<std::chrono::milliseconds> time_left(Clock::time_point now) const;
};

// "0:41", "12:03", "1:02:03".
std::string age_text(std::chrono::milliseconds age);

// "3/16 trials, 2 running, about 4m left, best 12.3 TFLOP/s, stage 2, micro batch 8".
std::string status_line(const SearchView& view, SearchView::Clock::time_point now);

// At most `size.rows` - 1 lines: a progress bar, the best, the ceilings, the running trials, the warnings.
std::vector<StyledLine> picture(const SearchView& view, SearchView::Clock::time_point now, TerminalSize size,
                                bool drawing);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SEARCH_VIEW_H_
