// Turns events into two calls, and the requests that they make into ops. A result waits for the exit of its trial.
#include "finals/host_strategy.h"

#include <utility>

namespace dsat::host {

std::vector<Op> HostStrategy::handle(const StrategyEvent& event, RequestAnswers& answers) {
  answers_ = &answers;
  ops_.clear();
  switch (event.kind) {
    case StrategyEvent::Kind::start:
      start(event.study);
      break;
    case StrategyEvent::Kind::result:
      metrics_ = event.metrics;
      break;
    case StrategyEvent::Kind::exited:
      trial_ended({event.trial, static_cast<Outcome>(event.outcome), std::exchange(metrics_, Json()), event.reason});
      break;
  }
  answers_ = nullptr;
  return std::move(ops_);
}

std::optional<uint64_t> HostStrategy::ask(const Json& overrides, const std::string& note, bool repeat) {
  Op op;
  op.overrides = overrides;
  op.note = note;
  op.repeat = repeat;
  op.trial = answers_->create_trial(op);
  op.refused = !op.trial.has_value();
  ops_.push_back(op);
  return op.trial;
}

void HostStrategy::finish(const std::string& reason, std::optional<uint64_t> best) {
  Op op;
  op.kind = Op::Kind::finish;
  op.reason = reason;
  op.trial = best;
  ops_.push_back(op);
}

void Baseline::start(const Json& brief) {
  if (!ask(brief.at("overrides"), "your own configuration")) finish("the trial limit leaves no trial for it", {});
}

void Baseline::trial_ended(const Ended& ended) { finish("your own configuration has ended", ended.trial); }

}  // namespace dsat::host
