// Fills the free slots with proposals of the acquisition, sets the risk that a proposal may take, and explains each
// trial in its note.
#include "guided/guided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "dsat/config/json.h"
#include "search/observation.h"

namespace dsat {
namespace {

using zero_model::EndedTrial;
using zero_model::Point;
using zero_model::Proposal;

// Below this expected gain, a stage without a measurement is worth a trial.
constexpr double kLittle = 0.003;
// After this many trials, each stage that may be the best should have been tried.
constexpr size_t kFirstFew = 7;
// A study this long can spare a trial for a stage that all models call slower.
constexpr int64_t kLongStudy = 24;

// Earlier trials that count against the limit: those of the profile and of an earlier searcher. A trial may be in both
// lists. A refused configuration cost no trial.
int64_t trials_before(const Study& study) {
  std::set<TrialId> trials;
  if (const Json* profiled = config::find(study.profile, "trials")) {
    for (const Json& trial : *profiled) trials.insert(trial.get<TrialId>());
  }
  for (const Json& seen : study.observations) {
    if (seen.value("outcome", "") != outcome_name(Outcome::invalid_config)) {
      trials.insert(seen.at("trial").get<TrialId>());
    }
  }
  return static_cast<int64_t>(trials.size());
}

std::string percent(double share, int digits) { return fmt::format("{:.{}f} %", 100 * share, digits); }

}  // namespace

Descriptor Guided::descriptor() {
  return {
      "dsat.guided",
      "guided",
      "1.0.0",
      "a model of ZeRO training, corrected by each trial, proposes the next one",
      {OptionSpec::number("tolerance", 0.5, "end when further trials are expected to gain less than this many percent")
           .min(0),
       OptionSpec::number("max-oom-probability", 0.04,
                          "highest probability that a trial runs out of memory, and highest share of such trials")
           .min(0.001)
           .max(0.5)},
      /*state_version=*/1,
      /*study=*/Json{{"zero_stages", {0, 1, 2, 3}}, {"profile_trials", 2}}};
}

Guided::Guided(Host host, const Options& options)
    : Searcher(host),
      tolerance_(options.get<double>("tolerance") / 100),
      most_risk_(options.get<double>("max-oom-probability")) {}

void Guided::prepare(const Study& study) {
  study_ = study;
  space_ = std::make_unique<zero_model::ModelSpace>(study);
  if (space_->micro_batches().empty() || space_->tuning_space().stages.empty()) {
    throw Error("the space is empty: no stage or no micro batch; widen the bounds or the global batch");
  }
  surrogate_ = std::make_unique<zero_model::Surrogate>(study, *space_);
  spent_ = trials_before(study);
  acquisition_ = std::make_unique<zero_model::Acquisition>(*space_, *surrogate_, study.seed);
}

void Guided::start(const Study& study) {
  prepare(study);
  advance();
}

void Guided::on_result(const Result& result) {
  for (OpenTrial& open : open_) {
    if (open.trial == result.trial()) open.metric = result.metric(study_.metric);
  }
}

void Guided::on_trial_exited(const Exit& exit) {
  if (finished_) return;
  limit_reached_ = false;
  const auto at =
      std::find_if(open_.begin(), open_.end(), [&](const OpenTrial& open) { return open.trial == exit.trial(); });
  if (at != open_.end()) {
    const OpenTrial open = *at;
    open_.erase(at);
    EndedTrial ended{exit.trial(), open.point, exit.outcome(), open.metric, {}};
    if (const auto peak = exit.peak_bytes()) ended.peak_bytes = static_cast<double>(*peak);
    if (const auto above = exit.peak_above_bytes()) ended.peak_above_bytes = static_cast<double>(*above);
    ended.allocator_retries = static_cast<int64_t>(exit.allocator_retries());
    surrogate_->learn(ended);
    if (open.gain > 0 && search::is_informative(ended.outcome)) promises_.add(open.gain, acquisition_->expected_best());
    failures_.add(ended.outcome, exit.reason());
    if (ended.outcome == Outcome::invalid_config) ++refused_;
    if (ended.outcome == Outcome::lost && open.again) surrogate_->leave(open.point);
    // The configuration did not cause the loss, so the trial is run once more, but only once.
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
  for (const OpenTrial& open : open_) points.push_back(open.point);
  return points;
}

// The usual risk is small. A proposal that promises more may take more risk, at a price in gain. The price rises when
// more than a share of the planned trials has run out of memory. Planned are the trials so far and a few to come; a
// minimum lets a small budget take risks too. A trial that would be left over costs nothing, so its gain alone decides.
zero_model::Risk Guided::risk(const std::vector<Point>& running) const {
  constexpr double kMostDaring = 0.7, kLeftOver = 0.95, kAtFirst = 15, kAhead = 16, kPrice = 0.04, kDearer = 0.5;
  if (left_over_) return {most_risk_, kLeftOver, 0};
  double expected_to_fail = 0;
  for (const Point& point : running) expected_to_fail += 1 - surrogate_->probability_of_fitting(point);
  // With an unknown device memory, only an out-of-memory trial shows where the ceiling is.
  const bool none_fails = surrogate_->out_of_memory() == 0 && expected_to_fail < most_risk_;
  if (!surrogate_->memory().device_known() && none_fails) return {kMostDaring, kMostDaring, 0};
  const double so_far = static_cast<double>(surrogate_->ended() + running.size());
  const double to_come = std::min(static_cast<double>(study_.limits.max_trials), 2 * so_far + kAhead);
  const double left = most_risk_ * std::max({kAtFirst, so_far, to_come}) -
                      static_cast<double>(surrogate_->out_of_memory()) - expected_to_fail;
  return {most_risk_, kMostDaring, kPrice * (1 + kDearer * std::max(0.0, -left))};
}

// A trial cannot learn from trials that still run, and trials that rest on one wrong belief fail together. So at most
// as many run at once as have ended, and at most half of those left. With hundreds of slots that would take ten rounds
// to fill them and ten to empty them, so rounds grow faster there and four suffice. If more trials were granted than
// the limit at the start, the limit was raised, and the number of trials left is unknown.
int64_t Guided::most_open() const {
  constexpr double kRounds = 4, kRounding = 1e-9;
  const auto at_once = static_cast<double>(study_.limits.max_concurrent_trials);
  const double growth = std::max(2.0, std::pow(at_once, 1 / kRounds));
  const int64_t used = spent_ + static_cast<int64_t>(asked_ - refused_);
  auto most = std::floor((growth - 1) * static_cast<double>(surrogate_->ended()) + kRounding);
  if (used <= study_.limits.max_trials) {
    const auto left = static_cast<double>(study_.limits.max_trials - used + static_cast<int64_t>(open_.size()));
    most = std::min(most, std::ceil(left * (1 - 1 / growth) - kRounding));
  }
  return std::clamp<int64_t>(static_cast<int64_t>(most), 1, search::most_open_trials(study_));
}

// All trials left together gain at most a multiple of the best one's gain, because each takes from the others. The
// share of their promises that the last trials kept counts too.
bool Guided::worth_it(const Proposal& proposal) const {
  constexpr double kTrialsAhead = 24;
  return !proposal.exploration.empty() || kTrialsAhead * proposal.gain * kept(Promises::kMost) >= tolerance_;
}

double Guided::kept(size_t last) const { return promises_.kept(last, acquisition_->expected_best(), tolerance_); }

// Where the last trials have not gained what they promised, the model is sure of small effects that are not there, and
// unaware of large ones. Then the next promise counts for less, and a look elsewhere is worth more.
std::optional<Proposal> Guided::propose() {
  constexpr size_t kLately = 6;  // trials; fewer may gain nothing by chance
  const std::vector<Point> running = pending();
  surrogate_->update();
  std::optional<Proposal> best = acquisition_->next(running, risk(running), asked_);
  if (best && surrogate_->ended() >= kFirstFew) {
    if (std::optional<Proposal> look = acquisition_->explore_new_stage()) return look;
  }
  if (!surrogate_->any_measured()) return best;
  const int64_t most = study_.limits.max_trials;
  const bool is_long = most >= kLongStudy;
  if (is_long && (left_over_ || 4 * static_cast<int64_t>(surrogate_->ended()) >= most)) {
    if (std::optional<Proposal> look = acquisition_->explore_denied_stage()) return look;
  }
  const double share = kept(kLately);
  if (!best || share * best->gain >= kLittle) return best;
  if (is_long) {
    if (std::optional<Proposal> look = acquisition_->explore_far_values()) return look;
  }
  const std::optional<Proposal> look = acquisition_->explore();
  return look && look->value > share * best->value ? look : best;
}

// Trials that would be left over cost nothing, so they may take any risk.
std::optional<Proposal> Guided::propose_left_over() {
  left_over_ = true;
  std::optional<Proposal> proposal = propose();
  left_over_ = false;
  if (proposal && worth_it(*proposal)) return proposal;
  std::optional<Proposal> look = acquisition_->explore_round_size();
  if (!look) look = acquisition_->explore_before_end();
  return look ? look : proposal;
}

void Guided::advance() {
  std::optional<std::string> stop;
  while (!stop && !limit_reached_ && static_cast<int64_t>(open_.size()) < most_open()) {
    if ((stop = failures_.reason_to_stop())) break;
    std::optional<Proposal> proposal = propose();
    if (open_.empty() && (!proposal || !worth_it(*proposal))) proposal = propose_left_over();
    if (!proposal) {
      if (open_.empty()) stop = "nothing is left to try that is likely to fit";
      break;
    }
    // If nothing is worth its risk now, the slot waits for the results of the running trials.
    if (!open_.empty() && proposal->exploration.empty() && proposal->value <= 0) break;
    if (!worth_it(*proposal)) {
      if (open_.empty()) stop = "all further trials together are expected to gain less than the tolerance";
      break;
    }
    limit_reached_ = !ask(*proposal, false);
  }
  if (stop) return end(*stop);
  if (limit_reached_ && open_.empty()) end(search::kTrialLimitReached);
}

bool Guided::ask(const Proposal& proposal, bool again) {
  TrialRequest request;
  request.overrides = space_->overrides(proposal.point);
  request.repeat = proposal.repeat;
  request.note = again ? "once more: the last trial was lost" : note(proposal);
  const std::optional<TrialId> trial = create_trial(request);
  if (!trial) return false;
  ++asked_;
  // An exploration doubts the models. Before the first measurement a gain is only an order of preference.
  const bool is_promise = proposal.exploration.empty() && surrogate_->any_measured();
  open_.push_back({*trial, proposal.point, is_promise ? proposal.gain : 0, again});
  return true;
}

std::string Guided::note(const Proposal& proposal) const {
  const std::string where = space_->text(proposal.point), fits = percent(proposal.fit_probability, 0);
  if (proposal.repeat) return fmt::format("measured again ({}): noise may hide which one is the best", where);
  if (!proposal.exploration.empty()) return fmt::format("{}: {}; fits with {}", where, proposal.exploration, fits);
  if (!surrogate_->any_measured()) return fmt::format("{}: fits with {}, nothing measured yet", where, fits);
  return fmt::format("{}: {}{} +- {} against the best, fits with {}, expected gain {}", where,
                     proposal.improvement >= 0 ? "+" : "", percent(proposal.improvement, 1),
                     percent(proposal.deviation, 1), fits, percent(proposal.gain, 2));
}

void Guided::end(const std::string& reason) {
  surrogate_->update_to_the_last();
  const std::optional<zero_model::Surrogate::Incumbent> best = surrogate_->incumbent();
  finished_ = true;
  const std::vector<std::string> effects = acquisition_->sensitivity();
  if (!effects.empty()) {
    log(Severity::info, fmt::format("what mattered, all else as in the best trial ({}):", space_->text(best->point)));
  }
  for (const std::string& line : effects) log(Severity::info, "  " + line);
  finish(reason, best ? best->trial : kNoTrial);
}

}  // namespace dsat
