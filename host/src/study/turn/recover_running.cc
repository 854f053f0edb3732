// Asks the runner about each trial: for its end, then for the trial itself, then for what is left of it.
#include "study/turn/recover_running.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "study/state/admission.h"

namespace dsat::host {
namespace {

// When a run ended that a crash cut off: not before it last wrote something, and not beyond what a trial may take,
// since a copy of the folder may have written its files again. Empty: unknown.
std::string end_of_cut_off(const TrialRecord& record, const std::string& written_at, std::chrono::milliseconds limit) {
  const auto start = parse_rfc3339(record.started_at), written = parse_rfc3339(written_at);
  return start && written ? format_rfc3339(std::min(*written, *start + limit)) : "";
}

}  // namespace

std::vector<TrialEnd> find_ended(StudyState& state, Runner& runner) {
  std::vector<TrialEnd> ends;
  const std::set<uint64_t> were_running = state.trials.running();
  for (const uint64_t id : were_running) {
    const TrialSpec spec = spec_of(state.plan, state.trials[id]);
    std::optional<TrialEnd> end = runner.find_end(spec);
    if (end) {
      ends.push_back(std::move(*end));
    } else if (!runner.take_up(spec)) {
      const std::string written_at = runner.last_written_at(spec);
      state.add_cost(id, end_of_cut_off(state.trials[id].record, written_at, state.plan.trial_timeout));
      const bool is_to_stop = state.trials.is_to_stop(id);
      state.trials.run_again(id);
      if (is_to_stop) state.trials.request_stop(id);
    }
  }
  return ends;
}

}  // namespace dsat::host
