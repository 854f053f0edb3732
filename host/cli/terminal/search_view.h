// What is known of a running study, and the picture that a terminal shows of it.
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

  struct Running {
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
  int earlier = 0;                      // trials that ended before this program took the study up
  int ended = 0;                        // since then
  std::map<uint64_t, Running> running;  // by id: a trial may start more than once
  std::optional<Best> best;
  std::optional<double> own;  // the metric of the user's own configuration
  Ceilings ceilings;
  std::vector<std::string> warnings;  // each once

  // By the pace until the last end of a trial, and the time budget; nullopt: nothing has ended yet.
  std::optional<std::chrono::milliseconds> time_left(Clock::time_point now) const;
};

// "0:41", "12:03", "1:02:03".
std::string age_text(std::chrono::milliseconds age);

// "trials 3/16, 2 running, about 4m left, best 12.3 TFLOP/s, stage 2, micro batch 8": all in one line.
std::string status_line(const SearchView& view, SearchView::Clock::time_point now);

// Bar, best, ceilings, running trials, warnings: at most `size.rows` - 1 lines, the most important first.
std::vector<StyledLine> picture(const SearchView& view, SearchView::Clock::time_point now, TerminalSize size,
                                bool drawing);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SEARCH_VIEW_H_
