// The coordinator's output: the best and the files while a study runs, and its close with the last rows of the journal,
// the last files and the result.
#include <fmt/format.h>

#include "base/fault_point.h"
#include "base/guarded.h"
#include "finals/end_to_end.h"
#include "finals/gain.h"
#include "study/results/no_best.h"
#include "study/turn/coordinator.h"

namespace dsat::host {

void Coordinator::refresh_best() {
  // Without a margin a device's memory says nothing of the best: what completed did fit.
  if (plan_.memory_margin > 0) best_.set_usable_memory(device_memory_.usable());
  if (!best_.refresh(trials_.all())) return;
  journal_.put_meta("best", best_.get() ? to_json(*best_.get()) : Json());
  if (best_.get()) observer_.on_best(*best_.get());
}

void Coordinator::write_results(const std::string& reason, bool now) {
  results_.write({plan_, trials_.all(), profile_, best_.get(), device_memory_.all(), reason, &own_}, now);
  const auto due = results_.due();
  if (!due || ending_ || runner_.commit_delay().count() > 0) return;
  loop_.cancel(summary_timer_);
  summary_timer_ = loop_.at(*due, [] {});  // a turn, and with it the summary
}

StudyResult Coordinator::close() {
  journal_.begin();
  refresh_best();
  if (ending_->status == StudyStatus::completed && !best_.get()) {
    ending_->status = StudyStatus::no_best;
    ending_->reason = why_no_best(trials_.all(), plan_.metric, ending_->reason);
    if (plan_.memory_margin > 0) ending_->reason += fmt::format("; --memory-margin is {}", plan_.memory_margin);
  }
  if (group_lost_) {
    trials_.take_changed();  // what led to these changes was lost
  } else {
    if (ending_->resumable) states_.save(run_);
    put_changes();
  }
  std::optional<Gain> gain;
  if (best_.get() && plan_.baseline) {
    gain = gain_over_own(trials_.all(), plan_.metric, plan_.maximise, own_.identity, best_.get()->trial);
  }
  journal_.put_meta("gain", gain ? to_json(*gain) : Json());
  journal_.put_meta("ended", {{"status", to_string(ending_->status)}, {"reason", ending_->reason}});
  try {
    write_last();
  } catch (const std::exception& error) {
    if (ending_->status != StudyStatus::failed) ending_ = Ending{StudyStatus::failed, status_of(error).message()};
  }
  if (ending_->status == StudyStatus::no_best) {
    for (const std::string& line : last_lines_of_failure(trials_.all(), plan_.dir)) {
      log(Observer::Severity::error, line);
    }
  }
  StudyResult result;
  result.status = ending_->status;
  result.reason = ending_->reason;
  result.best = best_.get();
  result.gain = gain;
  if (result.best) {
    result.end_to_end = end_to_end_of_best(trials_.all(), plan_.baseline ? own_.identity : "", result.best->trial);
  }
  result.dir = plan_.dir;
  result.metric = plan_.metric;
  for (const Trial& trial : trials_.all()) {
    if (trial.record.outcome && !trial.record.duplicate_of) ++result.counts[*trial.record.outcome];
  }
  return result;
}

void Coordinator::write_last() {
  run_.strategy.reset();
  plugin_log_.forward(observer_);
  // Before the journal says that the study has ended: nobody would write what is missing then.
  write_results(ending_->reason, true);
  fault_point("close.before_commit");
  journal_.commit();
  fault_point("close.committed");
  observer_.on_closing();
  try {
    if (journal_.checkpoint()) return;
    log(Observer::Severity::info,
        fmt::format("{}: another program reads it, so its log stays beside it (dsat.db-wal); nothing is lost",
                    journal_.file().string()));
  } catch (const Error& error) {  // it is whole all the same
    log(Observer::Severity::warning, error.what());
  }
}

}  // namespace dsat::host
