// A test bench for searchers and profilers: plays the host, without processes, files or clocks.
//
// Purpose: a plugin's author states a study and a function that answers trials, runs the strategy to its end and looks
//   at what it asked for. The bench keeps the host's rules: ops take effect together or not at all, only started trials
//   count against the limit, an identical request is answered from the first one's result, every trial of an accepted
//   event ends exactly once, and results come before exits.
// Threading: one thread. Ownership: a Bench owns its strategy; the factory must outlive it.
// Errors: a strategy's failure ends the run and stands in error(); misuse of the bench itself throws dsat::Error.
//
//   dsat::testing::Bench bench(dsat::testing::factory<MySearcher>(), "my.searcher", study, answer);
//   bench.run();
//   EXPECT_EQ(bench.best(), 7);
#ifndef DSAT_TESTING_H_
#define DSAT_TESTING_H_

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsat/searcher.h"

namespace dsat::testing {

// A trial as it was asked for.
struct Trial {
  TrialId id = kNoTrial;
  TrialId parent = kNoTrial;
  Json overrides;
  Json config;  // the study's base configuration with the overrides merged over it
  std::string note;
  bool repeat = false;
  bool duplicate = false;  // answered from an earlier trial's result; cost nothing
  int64_t micro_batch() const { return config.value("train_micro_batch_size_per_gpu", int64_t{0}); }
  int stage() const { return config.value("/zero_optimization/stage"_json_pointer, 0); }
};

// How it ended.
struct Answer {
  Outcome outcome = Outcome::completed;
  std::map<std::string, double> metrics;  // of a completed one
  std::optional<uint64_t> peak_bytes;
  std::string reason;
  std::optional<uint64_t> peak_above_bytes{};  // of one out of memory: see Exit
  uint64_t allocator_retries = 0;
  static Answer completed(std::map<std::string, double> metrics, std::optional<uint64_t> peak_bytes = std::nullopt) {
    return {Outcome::completed, std::move(metrics), peak_bytes, ""};
  }
  static Answer out_of_memory(std::optional<uint64_t> peak_above_bytes = std::nullopt) {
    return {Outcome::out_of_memory, {}, std::nullopt, "out of memory", peak_above_bytes};
  }
  static Answer failed(std::string reason) { return {Outcome::failed, {}, std::nullopt, std::move(reason)}; }
};
using AnswerFunction = std::function<Answer(const Trial&)>;

struct Ended {
  Trial trial;
  Answer answer;
};

// Copies every leaf of `source` over `base`, as the host merges overrides.
inline void merge(Json& base, const Json& source) {
  for (const auto& [key, value] : source.items()) {
    if (value.is_object() && base.contains(key) && base[key].is_object()) {
      merge(base[key], value);
    } else {
      base[key] = value;
    }
  }
}

// The factory of a class that is linked into the test; that of a loaded library comes from its entry's get_factory.
template <class T>
const dsat_factory& factory() {
  return *static_cast<const dsat_factory*>(detail::Factories<T>::get(T::kFactoryId));
}

// The ops of the event that is being handled. Outside of Bench, because an optional of a nested class with default
// members is not default-constructible inside the class around it (clang).
struct PendingOps {
  std::vector<Trial> created;
  std::vector<TrialId> stopped;
  bool finish = false;
  std::string reason;
  TrialId best = kNoTrial;
  std::optional<Json> profile;
};

class Bench {
 public:
  Bench(const dsat_factory& factory, const std::string& strategy_id, Study study, AnswerFunction answer,
        const Json& options = Json::object())
      : study_(std::move(study)), answer_(std::move(answer)) {
    make_host();
    go_on_after_the_profile();
    const dsat_descriptor* descriptor = find(factory, strategy_id);
    const std::string values = with_defaults(Json::parse(descriptor->options_json), options).dump();
    if (factory.create(descriptor->id, &host_, detail::str(values), &strategy_) != DSAT_OK) fail("create");
  }
  ~Bench() {
    if (strategy_ != nullptr) strategy_->destroy(strategy_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Which of the running trials ends next: an index below `running`. Default: the oldest.
  void end_in_order(std::function<size_t(size_t running)> order) { order_ = std::move(order); }

  // Starts, then ends trials until the study ends. Returns false if the strategy failed.
  bool run() {
    start();
    while (step()) {
    }
    return error_.empty();
  }

  void start() {
    if (strategy_ == nullptr) return;
    const auto start = [&](const dsat_study& raw) { return strategy_->start(strategy_, &raw); };
    event("start", [&] { return with_study(start); });
    stop_open_trials();
  }

  // Ends one running trial. False: none is open, or the study has ended.
  bool step() {
    if (finished_ || !error_.empty() || open_.empty()) return false;
    const size_t running = std::min<size_t>(open_.size(), std::max<int64_t>(1, study_.limits.max_concurrent_trials));
    const size_t index = order_ ? order_(running) % running : 0;
    const Trial trial = open_[index];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
    deliver({trial, answer_for(trial)});
    stop_open_trials();
    return error_.empty() && !finished_;
  }

  // The strategy's state; empty when it keeps none.
  std::string save() {
    std::string state;
    if (strategy_ == nullptr || strategy_->save == nullptr) return state;
    const dsat_sink sink{&state, [](const dsat_sink* self, const void* data, size_t size) noexcept -> dsat_status {
                           static_cast<std::string*>(self->ctx)->append(static_cast<const char*>(data), size);
                           return DSAT_OK;
                         }};
    if (strategy_->save(strategy_, &sink) != DSAT_OK) fail("save");
    return state;
  }

  // Gives the strategy a state that it may refuse; true: it has taken it.
  bool restore(std::string_view state) {
    if (strategy_ == nullptr || strategy_->restore == nullptr) return false;
    return with_study([&](const dsat_study& raw) { return strategy_->restore(strategy_, &raw, detail::str(state)); }) ==
           DSAT_OK;
  }

  // Takes over `other`'s study, at its present point, with the state that its strategy saved.
  void restore_from(Bench& other) {
    const std::string state = other.save();
    open_ = other.open_;
    ended_ = other.ended_;
    asked_ = other.asked_;
    first_of_ = other.first_of_;
    next_id_ = other.next_id_;
    counted_ = other.counted_;
    if (strategy_->restore == nullptr) throw Error(DSAT_UNIMPLEMENTED, "this strategy keeps no state");
    const auto restore = [&](const dsat_study& raw) { return strategy_->restore(strategy_, &raw, detail::str(state)); };
    if (with_study(restore) != DSAT_OK) fail("restore");
  }

  // What the strategy did, in order.
  const std::vector<Trial>& asked() const { return asked_; }
  const std::vector<Ended>& ended() const { return ended_; }
  size_t open() const { return open_.size(); }
  int64_t counted() const { return counted_; }  // trials against the limit
  bool finished() const { return finished_; }
  const std::string& finish_reason() const { return finish_reason_; }
  TrialId best() const { return best_; }
  const Json& profile() const { return profile_; }
  const std::vector<std::string>& logs() const { return logs_; }
  const std::string& error() const { return error_; }  // empty: nothing failed
  const dsat_host& host() const { return host_; }

  // One line for each op, for comparing two runs.
  std::vector<std::string> ops() const {
    std::vector<std::string> lines;
    for (const Trial& trial : asked_) {
      const std::string parent = trial.parent == kNoTrial ? "none" : std::to_string(trial.parent);
      lines.push_back(std::to_string(trial.id) + " after " + parent + " " + trial.overrides.dump() + " " + trial.note);
    }
    if (finished_) lines.push_back("finish " + std::to_string(best_) + " " + finish_reason_);
    return lines;
  }

 private:
  // The profile's trials have the first ids, count against the limit, and are not run again.
  void go_on_after_the_profile() {
    const auto take = [this](TrialId id) { next_id_ = std::max<TrialId>(next_id_, id + 1); };
    if (study_.profile.is_object()) {
      const Json trials = study_.profile.value("trials", Json::array());
      for (const Json& id : trials) take(id.get<TrialId>());
      counted_ = static_cast<int64_t>(trials.size());
    }
    if (!study_.observations.is_array()) return;
    for (const Json& seen : study_.observations) {
      take(seen.at("trial").get<TrialId>());
      first_of_.emplace(seen.at("config").dump(), seen.at("trial").get<TrialId>());
    }
  }

  static Bench& self(const dsat_host* host) { return *static_cast<Bench*>(host->host_data); }

  void make_host() {
    host_ = {};
    host_.struct_size = sizeof(dsat_host);
    host_.abi_minor = DSAT_ABI_MINOR;
    host_.host_data = this;
    host_.set_error = [](const dsat_host* h, dsat_str text) noexcept { self(h).message_ = detail::view(text); };
    host_.log = [](const dsat_host* h, int32_t, dsat_str text) noexcept {
      self(h).logs_.emplace_back(detail::view(text));
    };
    host_.create_trial = [](const dsat_host* h, const dsat_trial_request* request, dsat_trial_id* id) noexcept {
      return self(h).create_trial(*request, *id);
    };
    host_.stop_trial = [](const dsat_host* h, dsat_trial_id id) noexcept { return self(h).stop_trial(id); };
    host_.finish = [](const dsat_host* h, dsat_str reason, dsat_trial_id best) noexcept -> dsat_status {
      Bench& bench = self(h);
      if (!bench.may_op()) return DSAT_FAILED_PRECONDITION;
      bench.pending_->finish = true;
      bench.pending_->reason = detail::view(reason);
      bench.pending_->best = best;
      return DSAT_OK;
    };
    host_.set_profile = [](const dsat_host* h, dsat_str text) noexcept -> dsat_status {
      Bench& bench = self(h);
      if (!bench.may_op()) return DSAT_FAILED_PRECONDITION;
      Json profile = Json::parse(detail::view(text), nullptr, false);
      if (!profile.is_object()) return DSAT_INVALID_ARGUMENT;
      bench.pending_->profile = std::move(profile);
      return DSAT_OK;
    };
    host_.get_extension = [](const dsat_host*, const char*) noexcept -> const void* { return nullptr; };
  }

  static const dsat_descriptor* find(const dsat_factory& factory, const std::string& id) {
    for (uint32_t i = 0; i < factory.count; ++i) {
      const dsat_descriptor* descriptor = factory.descriptor(i);
      if (id == descriptor->id || id == descriptor->name) return descriptor;
    }
    throw Error(DSAT_NOT_FOUND, "the factory has no strategy '" + id + "'");
  }

  static Json with_defaults(const Json& declared, const Json& given) {
    Json values = Json::object();
    for (const Json& option : declared) values[option.at("name").get<std::string>()] = option.at("default");
    for (const auto& [name, value] : given.items()) {
      if (!values.contains(name)) throw Error(DSAT_NOT_FOUND, "the strategy has no option '" + name + "'");
      values[name] = value;
    }
    return values;
  }

  bool may_op() const { return pending_.has_value() && !pending_->finish; }

  dsat_status create_trial(const dsat_trial_request& request, dsat_trial_id& id) noexcept {
    if (!may_op()) return DSAT_FAILED_PRECONDITION;
    Trial trial;
    trial.overrides = Json::parse(detail::view(request.overrides_json), nullptr, false);
    if (!trial.overrides.is_object()) return DSAT_INVALID_ARGUMENT;
    trial.config = study_.base_config;
    merge(trial.config, trial.overrides);
    trial.parent = request.parent;
    trial.note = detail::view(request.note);
    trial.repeat = (request.flags & DSAT_TRIAL_REPEAT) != 0;
    trial.duplicate = !trial.repeat && known(trial.config);
    int64_t counted = counted_;
    for (const Trial& earlier : pending_->created) counted += earlier.duplicate ? 0 : 1;
    if (!trial.duplicate && counted >= study_.limits.max_trials) return DSAT_RESOURCE_EXHAUSTED;
    trial.id = next_id_ + pending_->created.size();
    id = trial.id;
    pending_->created.push_back(std::move(trial));
    return DSAT_OK;
  }

  bool known(const Json& config) const {
    if (first_of_.count(config.dump()) != 0) return true;
    return std::any_of(pending_->created.begin(), pending_->created.end(),
                       [&](const Trial& trial) { return trial.config == config; });
  }

  dsat_status stop_trial(dsat_trial_id id) noexcept {
    if (!may_op()) return DSAT_FAILED_PRECONDITION;
    if (id >= next_id_ + pending_->created.size()) return DSAT_NOT_FOUND;
    pending_->stopped.push_back(id);
    return DSAT_OK;
  }

  // The study as it crosses the boundary; its text lives as long as the call.
  template <class Call>
  dsat_status with_study(const Call& call) const {
    const std::string json = study_.to_json().dump();
    return call(dsat_study{sizeof(dsat_study), 0, study_.seed, detail::str(json)});
  }

  // Hands one event to the strategy; commits its ops if it succeeds.
  template <class Call>
  void event(const char* name, Call&& call) {
    pending_.emplace();
    pending_->finish = finished_;  // then no op is legal any more
    message_.clear();
    const dsat_status status = call();
    PendingOps done = std::move(*pending_);
    pending_.reset();
    if (status != DSAT_OK) return fail(name);
    for (Trial& trial : done.created) {
      next_id_ = trial.id + 1;
      if (!trial.duplicate) ++counted_;
      first_of_.emplace(trial.config.dump(), trial.id);
      asked_.push_back(trial);
      open_.push_back(std::move(trial));
    }
    stopped_.insert(stopped_.end(), done.stopped.begin(), done.stopped.end());
    if (done.profile) profile_ = *done.profile;
    if (done.finish && !finished_) {
      finished_ = true;
      finish_reason_ = done.reason;
      best_ = done.best;
    }
  }

  // After finish the trials that are still open are stopped; the strategy hears of it.
  void stop_open_trials() {
    while (finished_ && error_.empty() && !open_.empty()) {
      const Trial trial = open_.front();
      open_.erase(open_.begin());
      deliver({trial, {Outcome::stopped, {}, std::nullopt, "the study has ended"}});
    }
  }

  Answer answer_for(const Trial& trial) {
    if (std::find(stopped_.begin(), stopped_.end(), trial.id) != stopped_.end()) {
      return {Outcome::stopped, {}, std::nullopt, "stopped by the strategy"};
    }
    if (trial.duplicate) {
      const TrialId first = first_of_.at(trial.config.dump());
      for (const Ended& ended : ended_) {
        if (ended.trial.id == first) return ended.answer;
      }
    }
    Answer answer = answer_(trial);
    if (answer.outcome == Outcome::invalid_config && !trial.duplicate) --counted_;
    return answer;
  }

  void deliver(Ended ended) {
    ended_.push_back(ended);
    const Answer& answer = ended.answer;
    if (answer.outcome == Outcome::completed) {
      std::vector<dsat_metric> metrics;
      for (const auto& [name, value] : answer.metrics) metrics.push_back({detail::str(name), value});
      const dsat_result result{sizeof(dsat_result), static_cast<uint32_t>(metrics.size()), ended.trial.id, 5,
                               metrics.data()};
      event("on_result", [&] { return strategy_->on_result(strategy_, &result); });
      if (!error_.empty()) return;
    }
    const int32_t exit_code = answer.outcome == Outcome::completed ? 0 : 1;
    const dsat_exit exit{sizeof(dsat_exit),
                         static_cast<dsat_trial_outcome>(answer.outcome),
                         ended.trial.id,
                         answer.peak_bytes.value_or(0),
                         exit_code,
                         0,
                         1,
                         0,
                         detail::str(answer.reason),
                         answer.peak_above_bytes.value_or(0),
                         answer.allocator_retries};
    event("on_trial_exited", [&] { return strategy_->on_trial_exited(strategy_, &exit); });
  }

  void fail(const char* where) {
    error_ = std::string(where) + ": " + (message_.empty() ? "failed without a message" : message_);
  }

  Study study_;
  AnswerFunction answer_;
  std::function<size_t(size_t)> order_;
  dsat_host host_{};
  dsat_strategy* strategy_ = nullptr;
  std::optional<PendingOps> pending_;
  std::vector<Trial> open_, asked_;
  std::vector<Ended> ended_;
  std::vector<TrialId> stopped_;
  std::map<std::string, TrialId> first_of_;
  TrialId next_id_ = 0;
  int64_t counted_ = 0;
  bool finished_ = false;
  std::string finish_reason_, message_, error_;
  TrialId best_ = kNoTrial;
  Json profile_;
  std::vector<std::string> logs_;
};

}  // namespace dsat::testing

#endif  // DSAT_TESTING_H_
