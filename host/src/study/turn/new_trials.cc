// A request becomes one of three trials: a refused one, a duplicate that gets the answer of an earlier trial, or a
// trial that costs a run and counts against the limit.
#include "study/turn/new_trials.h"

#include <utility>

#include "study/state/admission.h"

namespace dsat::host {

std::optional<uint64_t> NewTrials::create_trial(const Op& request) {
  Trial trial = trial_of(request);
  const uint64_t id = trial.id();
  if (trial.costs_a_run()) {
    if (trials_.counted() + counted_ >= max_trials_) return std::nullopt;
    ++counted_;
    fruitless_ = 0;
    first_of_.emplace(trial.identity, id);
  } else {
    // A strategy may ask for ever in one event.
    if (fruitless_ >= kFruitlessRequests) return std::nullopt;
    ++fruitless_;
  }
  asked_.push_back(std::move(trial));
  return id;
}

void NewTrials::begin_again() {
  asked_.clear();
  first_of_.clear();
  counted_ = fruitless_ = 0;
}

std::optional<uint64_t> NewTrials::answering(const std::string& identity) const {
  if (const std::optional<uint64_t> earlier = trials_.answering(identity)) return earlier;
  const auto asked = first_of_.find(identity);
  return asked == first_of_.end() ? std::nullopt : std::optional<uint64_t>(asked->second);
}

Trial NewTrials::trial_of(const Op& request) const {
  Admission admission = admit(plan_, request.overrides);
  Trial trial;
  trial.phase = phase_;
  trial.model_info = admission.model_info;
  trial.identity = std::move(admission.identity);
  TrialRecord& record = trial.record;
  record.id = next_id();
  record.parent = request.parent;
  record.config = std::move(admission.config);
  record.overrides = request.overrides;
  record.note = request.note;
  record.submitted_at = loop_.utc_now();

  const std::optional<uint64_t> original = answering(trial.identity);
  if (admission.invalid.empty() && (!original || request.repeat) && may_be_refused(phase_)) {
    admission.invalid = culprits_.why_refused(record.config, plan_.space);
  }
  if (!admission.invalid.empty()) {
    record.outcome = Outcome::invalid_config;
    record.reason = admission.invalid;
    record.ended_at = record.submitted_at;
  } else if (!request.repeat) {
    record.duplicate_of = original;
  }
  record.kind = phase_ == Phase::profiler                               ? TrialKind::profile
                : record.duplicate_of                                   ? TrialKind::duplicate
                : request.repeat && (original || phase_ == Phase::twin) ? TrialKind::repeat
                : trial.identity == baseline_                           ? TrialKind::baseline
                                                                        : TrialKind::search;
  return trial;
}

}  // namespace dsat::host
