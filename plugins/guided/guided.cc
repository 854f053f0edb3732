#include "guided/guided.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "zero_model/choice/read_observation.h"

namespace dsat {
namespace {

using guided::Ended;
using guided::Point;
using guided::positive;
using guided::Proposal;

constexpr int64_t kMostFailures = 64;
// Below this expected gain it is time to look where nothing was measured.
constexpr double kLittle = 0.003;
// After so many trials each stage that may be the best should have been seen.
constexpr size_t kFirstFew = 7;

bool teaches(Outcome outcome) { return outcome == Outcome::completed || outcome == Outcome::out_of_memory; }

std::string percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * share);
  return text;
}

}  // namespace

Descriptor Guided::descriptor() {
  return {
      "dsat.guided",
      "guided",
      "1.0.0",
      "a model of ZeRO training, corrected by each trial, proposes the next one",
      {OptionSpec::number("tolerance", 0.5, "end when further trials are expected to gain less than so many percent")
           .min(0),
       OptionSpec::number("max-oom-probability", 0.04,
                          "highest probability of running out of memory of a trial, and share of such trials")
           .min(0.001)
           .max(0.5)},
      /*state_version=*/1,
      /*study=*/Json{{"zero_stages", {0, 1, 2, 3}}}};
}

Guided::Guided(Host host, const Options& options)
    : Searcher(host),
      tolerance_(options.get<double>("tolerance") / 100),
      most_risk_(options.get<double>("max-oom-probability")) {}

void Guided::prepare(const Study& study) {
  study_ = study;
  lattice_ = std::make_unique<guided::Lattice>(study);
  if (lattice_->micro_batches().empty() || lattice_->space().stages.empty()) {
    throw Error("the space is empty: no stage or no micro batch; widen the bounds or the global batch");
  }
  beliefs_ = std::make_unique<guided::Beliefs>(study, *lattice_);
  beside_ = std::max(study.limits.max_concurrent_trials, study.limits.open_trials) > 1;
  planner_ = std::make_unique<guided::Planner>(*lattice_, *beliefs_, study.seed, beside_);
  for (const Json& observation : study.observations) {
    if (const auto ended = guided::ended_of(observation, study.metric, *lattice_)) beliefs_->learn(*ended);
  }
}

void Guided::start(const Study& study) {
  prepare(study);
  advance();
}

void Guided::on_result(const Result& result) {
  for (Open& open : open_) {
    if (open.trial != result.trial()) continue;
    open.metric = positive(result.metric(study_.metric));
    open.forward = positive(result.metric("forward"));
    open.backward = positive(result.metric("backward"));
    open.step = positive(result.metric("step"));
  }
}

void Guided::on_trial_exited(const Exit& exit) {
  if (finished_) return;
  limit_reached_ = false;
  const auto at =
      std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.trial == exit.trial(); });
  if (at != open_.end()) {
    const Open open = *at;
    open_.erase(at);
    Ended ended{exit.trial(), open.point, exit.outcome(), open.metric, open.forward, open.backward, open.step, {}};
    if (const auto peak = exit.peak_bytes()) ended.peak_bytes = static_cast<double>(*peak);
    beliefs_->learn(ended);
    failures_ = teaches(ended.outcome) ? 0 : failures_ + 1;
    if (!teaches(ended.outcome)) last_failure_ = exit.reason();
    // Not the configuration's doing: once more, and then no more.
    if (ended.outcome == Outcome::lost && !open.again) {
      Proposal proposal;
      proposal.point = open.point;
      proposal.repeat = true;
      limit_reached_ = !ask(proposal, true);
    }
  }
  advance();
}

std::vector<Point> Guided::pending() const {
  std::vector<Point> points;
  for (const Open& open : open_) points.push_back(open.point);
  return points;
}

// The usual risk is small. What promises more may dare, at a price in gain that rises once a share of the planned
// trials has run out of memory: of those so far, of a first few so that a small budget can dare too, and of those to
// come, but not far ahead. Beside others a slot that fails costs less time than one that shows what is known already.
guided::Risk Guided::risk(const std::vector<Point>& running) const {
  constexpr double kMostDaring = 0.7, kAtFirst = 15, kAhead = 16, kPrice = 0.025, kDearer = 0.5;
  constexpr double kBesideShare = 5, kBesidePrice = 0.1;
  // Without the device's memory only running out of it tells where the ceiling is.
  if (!beliefs_->memory().device_known() && beliefs_->out_of_memory() == 0) return {kMostDaring, kMostDaring, 0};
  const double so_far = static_cast<double>(beliefs_->ended() + running.size());
  const double to_come = std::min(static_cast<double>(study_.limits.max_trials), 2 * so_far + kAhead);
  double left = most_risk_ * std::max({kAtFirst, so_far, to_come});
  left -= static_cast<double>(beliefs_->out_of_memory());
  for (const Point& point : running) left -= 1 - beliefs_->probability_of_fitting(point);
  if (!beside_) return {most_risk_, kMostDaring, kPrice * (1 + kDearer * std::max(0.0, -left))};
  left += kBesideShare * most_risk_ * static_cast<double>(study_.limits.max_concurrent_trials);
  return {most_risk_, kMostDaring, kPrice * (kBesidePrice + kDearer * std::max(0.0, -left))};
}

// What the trials that are left may gain together: no more than some times what the best of them does, since each takes
// from the others.
bool Guided::worth_it(const Proposal& proposal) const {
  constexpr double kTrialsAhead = 24;
  return !proposal.look.empty() || kTrialsAhead * proposal.gain >= tolerance_;
}

// A young study searches for each trial; an old one lets a search serve until there is enough news for another.
std::optional<Proposal> Guided::propose() {
  const std::vector<Point> running = pending();
  if (beliefs_->due()) queue_.clear();
  while (!queue_.empty()) {
    const Proposal next = queue_.back();
    queue_.pop_back();
    const bool runs = std::find(running.begin(), running.end(), next.point) != running.end();
    if (!runs && beliefs_->find(next.point) == nullptr) return next;
  }
  // Beside others each draw says what they will have shown; one at a time, or in an old study, they narrow what is
  // believed.
  beliefs_->update(planner_->draws_pending() ? std::vector<Point>() : running);
  std::optional<Proposal> best = planner_->next(running, risk(running), asked_);
  if (best && beliefs_->ended() >= kFirstFew) {
    if (std::optional<Proposal> look = planner_->look_at_new_stage()) return look;
  }
  if (best && beliefs_->any_measured() && best->gain < kLittle) {
    if (std::optional<Proposal> look = planner_->look_around(false)) return look;
    if (!worth_it(*best)) {
      if (std::optional<Proposal> look = planner_->look_around(true)) return look;
    }
  }
  if (!beliefs_->young()) {
    queue_ = planner_->ranked();
    std::reverse(queue_.begin(), queue_.end());
  }
  return best;
}

void Guided::advance() {
  const int64_t most_open = std::max({int64_t{1}, study_.limits.max_concurrent_trials, study_.limits.open_trials});
  std::optional<std::string> stop;
  while (!stop && !limit_reached_ && static_cast<int64_t>(open_.size()) < most_open) {
    if (failures_ >= kMostFailures) {
      stop = std::to_string(failures_) + " trials in a row failed, the last with: " + last_failure_;
      break;
    }
    const std::optional<Proposal> proposal = propose();
    if (!proposal) {
      if (open_.empty()) stop = "nothing is left to try that is likely to fit";
      break;
    }
    if (!worth_it(*proposal)) {
      if (open_.empty()) stop = "all further trials together are expected to gain less than the tolerance";
      break;
    }
    limit_reached_ = !ask(*proposal, false);
  }
  if (stop) return end(*stop);
  if (limit_reached_ && open_.empty()) end("all trials that --max-trials allows are spent");
}

bool Guided::ask(const Proposal& proposal, bool again) {
  TrialRequest request;
  request.overrides = lattice_->overrides(proposal.point);
  request.repeat = proposal.repeat;
  request.note = again ? "once more: the last trial was lost" : note(proposal);
  const std::optional<TrialId> trial = create_trial(request);
  if (!trial) return false;
  ++asked_;
  open_.push_back({*trial, proposal.point, again, {}, {}, {}, {}});
  return true;
}

std::string Guided::note(const Proposal& proposal) const {
  const std::string where = lattice_->text(proposal.point);
  if (proposal.repeat) return "measured again (" + where + "): noise may hide which one is the best";
  if (!proposal.look.empty()) return where + ": " + proposal.look + "; fits with " + percent(proposal.fits, 0);
  if (!beliefs_->any_measured()) return where + ": fits with " + percent(proposal.fits, 0) + ", nothing measured yet";
  return where + ": " + (proposal.improvement >= 0 ? "+" : "") + percent(proposal.improvement, 1) + " +- " +
         percent(proposal.deviation, 1) + " against the best, fits with " + percent(proposal.fits, 0) +
         ", expected gain " + percent(proposal.gain, 2);
}

void Guided::end(const std::string& reason) {
  beliefs_->update({});
  const std::optional<guided::Beliefs::Best> best = beliefs_->best();
  finished_ = true;
  const std::vector<std::string> effects = planner_->effects();
  if (!effects.empty()) {
    log(Severity::info, "what mattered, all else as in the best trial (" + lattice_->text(best->point) + "):");
  }
  for (const std::string& line : effects) log(Severity::info, "  " + line);
  finish(reason, best ? best->trial : kNoTrial);
}

}  // namespace dsat
