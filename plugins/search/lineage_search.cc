// Fills the open slots with steps of lineages, settles each lineage when its trial ends, and saves the searchers'
// state.
#include "search/lineage_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsat::search {
namespace {

// The search ends after this many configurations in a row without any micro batch worth a trial.
constexpr int64_t kMostBarren = 256;

// Adds a member that is a list. JSON is built for one element at a time, because the JSON of a whole study takes many
// times the memory of its text.
template <class List, class Form>
void append_list(std::string& text, const char* name, const List& list, const Form& form) {
  text += std::string("\"") + name + "\":[";
  for (const auto& element : list) text += form(element).dump() + ',';
  if (text.back() == ',') text.pop_back();
  text += ']';
}

}  // namespace

void LineageSearch::prepare(const Study& study) {
  study_ = study;
  space_ = config::space_from_json(study.space);
  micro_batches_ = std::make_unique<MicroBatches>(space_);
  if (micro_batches_->empty()) throw Error("the space allows no micro batch; widen its bounds or the global batch");
  configurations_ = std::make_unique<Configurations>(study.seed, space_);
  history_ = std::make_unique<TrialHistory>(study);
  // With a fixed global batch, latency counts the same samples at every micro batch, and so does what a script prints
  // of its steps. Other times do not.
  const bool whole_step = study.metric == "latency" || study.metric == "wall_latency" || study.metric == "printed";
  small_wins_ = !study.maximise && !(whole_step && space_.micro_batch_divides);
}

void LineageSearch::start(const Study& study) {
  prepare(study);
  advance();
}

void LineageSearch::on_result(const Result& result) {
  const auto owner = by_open_trial_.find(result.trial());
  if (owner != by_open_trial_.end()) lineages_[owner->second].open_metric = result.metric(study_.metric);
}

void LineageSearch::on_trial_exited(const Exit& exit) {
  if (finished_) return;
  const auto open = by_open_trial_.find(exit.trial());
  // The exit of a trial that is not open changes no lineage. After a raised limit, new trials may start.
  if (open != by_open_trial_.end()) {
    const size_t index = open->second;
    by_open_trial_.erase(open);
    Lineage& owner = lineages_[index];
    Record record{exit.trial(), index, owner.open_rank, exit.outcome(), owner.open_metric, std::nullopt};
    if (const auto peak = exit.peak_bytes()) record.peak_bytes = static_cast<double>(*peak);
    owner.open = kNoTrial;
    owner.open_metric.reset();
    --open_;
    const std::optional<TrialHistory::BestTrial> before = history_->best();
    learn(record);
    records_.push_back(record);
    const std::optional<TrialHistory::BestTrial> after = history_->best();
    const bool improved = after && (!before || history_->better(after->metric, before->metric));
    since_best_ = improved ? 0 : since_best_ + 1;
    failures_.add(record.outcome, exit.reason());
    settle(index, record.trial, record.rank, record.outcome, record.metric);
  }
  limit_reached_ = false;
  advance();
}

void LineageSearch::learn(const Record& record) {
  const Json config = history_->merged(overrides(lineages_[record.lineage].configuration, record.rank));
  history_->learn(record.trial, config, record.outcome, record.metric, record.peak_bytes);
}

void LineageSearch::settle(size_t index, TrialId trial, int64_t rank, Outcome outcome, std::optional<double> metric) {
  Lineage& lineage = lineages_[index];
  lineage.last = trial;
  if (lineage.fails_above()) failing_.erase(failing_.find({*lineage.failed, lineage.failures > 1}));
  lineage.settle(rank, outcome, metric, [&](double a, double b) { return history_->better(a, b); });
  // If other configurations completed as large a micro batch, the size is not the cause of the failure.
  if ((outcome == Outcome::failed || outcome == Outcome::diverged) && !lineage.top && rank <= largest_completed())
    lineage.ended = true;
  note_top(lineage);
  changed(index);
}

// Includes the profile's trials.
int64_t LineageSearch::largest_completed() const {
  int64_t largest = 0;
  for (const config::StageSpace& stage : space_.stages) {
    largest = std::max(largest, history_->largest_fit(stage.stage));
  }
  return micro_batches_->rank_at_or_below(static_cast<double>(largest));
}

void LineageSearch::note_top(const Lineage& lineage) {
  if (lineage.fails_above()) failing_.insert({*lineage.failed, lineage.failures > 1});
  if (!lineage.top) return;
  int64_t& top = top_of_stage_.emplace(lineage.configuration.stage, *lineage.top).first->second;
  top = std::max(top, *lineage.top);
}

std::optional<int64_t> LineageSearch::top_of_stage(int stage) const {
  const auto it = top_of_stage_.find(stage);
  return it == top_of_stage_.end() ? std::nullopt : std::optional<int64_t>(it->second);
}

// Starts trials while slots are free. Finishes when nothing runs and nothing is left.
void LineageSearch::advance() {
  std::optional<std::string> stop;
  while (!stop && !limit_reached_ && open_ < most_open_trials(study_)) {
    stop = reason_to_stop();
    if (stop) break;
    const std::optional<size_t> index = choose();
    if (!index) break;
    limit_reached_ = !take_step(*index);
  }
  if (stop) return end(*stop);
  if (open_ > 0) return;
  if (limit_reached_) return end(kTrialLimitReached);
  end(nothing_left());
}

std::string LineageSearch::nothing_left() const {
  return fmt::format("nothing is left to try: {} configurations were searched to their end", lineages_.size());
}

std::optional<std::string> LineageSearch::reason_to_stop() const {
  if (const std::optional<std::string> failures = failures_.reason_to_stop()) return failures;
  if (barren_ >= kMostBarren) return "no further configuration fits the device";
  return enough();
}

void LineageSearch::end(const std::string& reason) {
  const std::optional<TrialHistory::BestTrial> best = history_->best();
  finished_ = true;
  finish(reason, best ? best->trial : kNoTrial);
}

// Runs one trial of a lineage, or ends the lineage. False: the trial limit is reached.
bool LineageSearch::take_step(size_t index) {
  const std::optional<Step> step = plan(index);
  Lineage& lineage = lineages_[index];
  if (!step) {
    lineage.ended = true;
    if (lineage.trials == 0) ++barren_;
    changed(index);
    return true;
  }
  lineage.low = std::max(lineage.low, step->low);
  const Json wanted = overrides(lineage.configuration, step->rank);
  const std::optional<TriedConfiguration> tried =
      lineage.again ? std::nullopt : history_->find(history_->merged(wanted));
  if (!tried) return ask(index, *step, wanted);
  settle(index, tried->trial, step->rank, tried->outcome, tried->metric);
  return true;
}

bool LineageSearch::ask(size_t index, const Step& step, const Json& overrides) {
  Lineage& lineage = lineages_[index];
  TrialRequest request;
  request.overrides = overrides;
  request.parent = lineage.last;
  request.repeat = lineage.again;
  request.note = fmt::format("{} of stage {}, lineage {}{}", step.why, lineage.configuration.stage, index,
                             lineage.again ? ", once more: the last trial was lost" : "");
  const std::optional<TrialId> trial = create_trial(request);
  if (!trial) return false;
  lineage.open = *trial;
  lineage.open_rank = step.rank;
  ++open_;
  by_open_trial_[*trial] = index;
  barren_ = 0;
  changed(index);
  return true;
}

std::optional<LineageSearch::Step> LineageSearch::plan(size_t index) const {
  const Lineage& lineage = lineages_[index];
  if (is_doubtful(lineage.configuration.stage)) return Step{0, 0, "the smallest micro batch, as nothing fits"};
  if (!small_wins_) return next_step(index);
  if (lineage.trials > 0) return std::nullopt;
  return Step{0, 0, fmt::format("smallest micro batch (least {})", study_.metric)};
}

std::optional<size_t> LineageSearch::idle_or_new() {
  while (first_alive_ < lineages_.size() && lineages_[first_alive_].ended) ++first_alive_;
  const auto alive = lineages_.begin() + static_cast<std::ptrdiff_t>(first_alive_);
  const auto idle = std::find_if(alive, lineages_.end(), [](const Lineage& l) { return l.idle(); });
  if (idle != lineages_.end()) return static_cast<size_t>(idle - lineages_.begin());
  return open_lineage();
}

std::optional<Configuration> LineageSearch::draw(uint64_t index, const Usable& usable) {
  return configurations_->draw(index, usable);
}

std::optional<size_t> LineageSearch::open_lineage() {
  if (std::optional<Configuration> frugal = next_frugal()) return add_lineage(std::move(*frugal));
  for (const config::StageSpace& stage : space_.stages) {
    if (is_doubtful(stage.stage) && is_looked_into(stage.stage)) return std::nullopt;
  }
  std::optional<Configuration> drawn = draw(lineages_.size(), [this](const Configuration& configuration) {
    return !is_taken(configuration) && may_fit(configuration);
  });
  if (!drawn) return std::nullopt;
  return add_lineage(std::move(*drawn));
}

size_t LineageSearch::add_lineage(Configuration configuration) {
  taken_.insert(configuration);
  Lineage lineage;
  lineage.configuration = std::move(configuration);
  lineages_.push_back(std::move(lineage));
  changed(lineages_.size() - 1);
  return lineages_.size() - 1;
}

// Values that clash only together, such as devices and pipeline stages, cannot be read, or break the space's
// conditions. The host refuses them.
bool LineageSearch::may_fit(const Configuration& configuration) const {
  try {
    const Json config = history_->merged(overrides(configuration, 0));
    if (config::broken_condition(space_.conditions, config, study().limits.slots_per_trial, false)) return false;
    return !history_->hopeless(history_->setup(config));
  } catch (const Error&) {
    return false;
  }
}

Json LineageSearch::overrides(const Configuration& configuration, int64_t rank) const {
  return config::overrides(*space_.stage(configuration.stage), configuration.choice, micro_batches_->at(rank));
}

std::string LineageSearch::range(int64_t low, int64_t high) const {
  return fmt::format("[{}, {}]", micro_batches_->at(low), micro_batches_->at(high));
}

std::string LineageSearch::save() const {
  Json state{{"failures", failures_.count},
             {"refused", failures_.refused},
             {"since_best", since_best_},
             {"last_failure", failures_.last_reason},
             {"barren", barren_}};
  state["drained"] = configurations_->drained();
  std::string text = state.dump();
  text.back() = ',';  // replaces the closing brace, because more members follow
  append_list(text, "lineages", lineages_, [](const Lineage& lineage) { return to_json(lineage); });
  text += ',';
  append_list(text, "trials", records_, [](const Record& r) {
    return Json{r.trial,
                r.lineage,
                r.rank,
                static_cast<int>(r.outcome),
                r.metric ? Json(*r.metric) : Json(),
                r.peak_bytes ? Json(*r.peak_bytes) : Json()};
  });
  return text + '}';
}

void LineageSearch::restore(const Study& study, std::string_view text) {
  prepare(study);
  try {
    const Json state = Json::parse(text);
    failures_.count = state.at("failures").get<int64_t>();
    failures_.refused = state.at("refused").get<int64_t>();
    since_best_ = state.at("since_best").get<int64_t>();
    barren_ = state.at("barren").get<int64_t>();
    failures_.last_reason = state.at("last_failure").get<std::string>();
    configurations_->set_drained(state.at("drained").get<std::set<int>>());
    for (const Json& json : state.at("lineages")) {
      lineages_.push_back(lineage_from_json(json));
      taken_.insert(lineages_.back().configuration);
      if (lineages_.back().open != kNoTrial) {
        ++open_;
        by_open_trial_[lineages_.back().open] = lineages_.size() - 1;
      }
      note_top(lineages_.back());
      changed(lineages_.size() - 1);
    }
    const auto maybe = [](const Json& json) {
      return json.is_null() ? std::nullopt : std::optional<double>(json.get<double>());
    };
    for (const Json& row : state.at("trials")) {
      records_.push_back({row.at(0).get<TrialId>(), row.at(1).get<size_t>(), row.at(2).get<int64_t>(),
                          static_cast<Outcome>(row.at(3).get<int>()), maybe(row.at(4)), maybe(row.at(5))});
      learn(records_.back());
    }
  } catch (const Json::exception&) {
    throw Error("the saved state of the search is damaged; start the study anew");
  }
}

}  // namespace dsat::search
