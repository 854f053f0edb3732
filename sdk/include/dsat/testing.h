// A test bench for searchers and profilers: a host without processes, files or clocks.
//
// Purpose: a plugin's author gives a study and a function that answers trials, runs the strategy to its end and looks
//   at its requests. The bench keeps the host's rules: the ops of an event take effect together or not at all; only
//   started trials count against the limit; an identical request waits for the result of the first one, or
//   takes that of an observation; every trial of an accepted event ends exactly once; results come before exits.
// Threading: one thread. A strategy may log from any thread, but other ops are refused there, as dsat-host does.
// Ownership: a Bench owns its strategy. The factory must outlive the Bench.
// Errors: a strategy's failure ends the run, and error() has its text. Misuse of the bench throws dsat::Error.
//
//   dsat::testing::Bench bench(dsat::testing::factory<MySearcher>(), "my.searcher", study, answer);
//   bench.run();
//   EXPECT_EQ(bench.best(), 7);
#ifndef DSAT_TESTING_H_
#define DSAT_TESTING_H_

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "dsat/searcher.h"
#include "dsat/testing_rules.h"
#include "dsat/testing_trial.h"

namespace dsat::testing {

// The factory of a class that is linked into the test. A loaded library gives its factory by get_factory of its entry.
template <class T>
const dsat_factory& factory() {
  return *static_cast<const dsat_factory*>(detail::Factories<T>::get(T::kFactoryId));
}

// The ops of the current event. The struct stands outside of Bench, because clang cannot default-construct an optional
// of a nested class with default members.
struct PendingOps {
  std::vector<Trial> created;
  std::vector<TrialId> stopped;
  bool finish = false;
  std::string reason;
  TrialId best = kNoTrial;
  std::optional<Json> profile;
};

// The state of a study. A bench can take it over from another bench.
struct Progress {
  std::vector<Trial> open, asked;
  std::vector<Ended> ended;
  std::vector<TrialId> stopped;
  std::map<TrialId, Known> known;
  TrialId next_id = 0;
  int64_t counted = 0;
  bool finished = false;
  std::string finish_reason;
  TrialId best = kNoTrial;
  Json profile;
};

class Bench {
 public:
  Bench(const dsat_factory& factory, const std::string& strategy_id, Study study, AnswerFunction answer,
        const Json& options = Json::object())
      : study_(rules::complete(std::move(study))), answer_(std::move(answer)) {
    make_host();
    go_on_after_the_profile();
    const dsat_descriptor* descriptor = find(factory, strategy_id);
    const std::string values = rules::option_values(Json::parse(descriptor->options_json), options).dump();
    if (call([&] { return factory.create(descriptor->id, &host_, detail::str(values), &strategy_); }) != DSAT_OK) {
      fail("create");
    } else if (!rules::is_complete(strategy_)) {
      strategy_ = nullptr;  // its destroy may be missing
      error_ = "create: it returned an incomplete strategy: start, on_result, on_trial_exited, destroy are needed";
    }
  }
  ~Bench() {
    if (strategy_ != nullptr) strategy_->destroy(strategy_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Chooses which running trial ends next: an index below `running`. Default: the oldest trial.
  void end_in_order(std::function<size_t(size_t running)> order) { order_ = std::move(order); }

  // Starts the strategy and ends trials until the study ends. False: the strategy failed.
  bool run() {
    start();
    while (step()) {
    }
    return error_.empty();
  }

  // Changes the trial limit, as `dsat-host resume --max-trials` does. The strategy's Study keeps the old one.
  void raise_limit(int64_t max_trials) { study_.limits.max_trials = max_trials; }

  void start() {
    if (strategy_ == nullptr) return;
    const auto start = [&](const dsat_study& raw) { return strategy_->start(strategy_, &raw); };
    event("start", [&] { return with_study(start); });
    stop_open_trials();
  }

  // Ends one running trial, or a duplicate whose answer is known. False: no trial is open, or the study has ended.
  bool step() {
    if (so_far_.finished || !error_.empty() || so_far_.open.empty()) return false;
    const size_t index = next_to_end();
    const Trial trial = so_far_.open[index];
    so_far_.open.erase(so_far_.open.begin() + static_cast<std::ptrdiff_t>(index));
    deliver({trial, answer_for(trial)});
    stop_open_trials();
    return error_.empty() && !so_far_.finished;
  }

  // Does the strategy implement save and restore?
  bool keeps_state() const {
    return strategy_ != nullptr && strategy_->save != nullptr && strategy_->restore != nullptr;
  }

  // The saved state; empty if the strategy keeps none. On a failure error() has the reason.
  std::string save() {
    std::string state;
    if (strategy_ == nullptr || strategy_->save == nullptr) return state;
    const dsat_sink sink{&state, [](const dsat_sink* self, const void* data, size_t size) noexcept -> dsat_status {
                           static_cast<std::string*>(self->ctx)->append(static_cast<const char*>(data), size);
                           return DSAT_OK;
                         }};
    if (call([&] { return strategy_->save(strategy_, &sink); }) != DSAT_OK) fail("save");
    return state;
  }

  // Restores a state. False: the strategy refused it.
  bool restore(std::string_view state) {
    if (strategy_ == nullptr || strategy_->restore == nullptr) return false;
    return call_restore(state) == DSAT_OK;
  }

  // Takes over the study of `other` at its present point, with the saved state of its strategy.
  void restore_from(Bench& other) {
    const std::string state = other.save();
    so_far_ = other.so_far_;
    if (strategy_->restore == nullptr) throw Error(DSAT_UNIMPLEMENTED, "this strategy keeps no state");
    if (call_restore(state) != DSAT_OK) fail("restore");
  }

  // The trials that the strategy asked for and their ends, in order.
  const std::vector<Trial>& asked() const { return so_far_.asked; }
  const std::vector<Ended>& ended() const { return so_far_.ended; }
  size_t open() const { return so_far_.open.size(); }
  int64_t counted() const { return so_far_.counted; }  // trials against the limit
  bool finished() const { return so_far_.finished; }
  const std::string& finish_reason() const { return so_far_.finish_reason; }
  TrialId best() const { return so_far_.best; }
  const Json& profile() const { return so_far_.profile; }
  const std::vector<std::string>& logs() const { return logs_; }
  const std::string& error() const { return error_; }  // empty: nothing failed
  // The refusal of an op that came outside of a call or from another thread; empty: none. A strategy can ignore it.
  std::string stray_op() const {
    const std::lock_guard<std::mutex> lock(logs_mutex_);
    return stray_op_;
  }
  const dsat_host& host() const { return host_; }

  // One line for each op, for comparing two runs.
  std::vector<std::string> ops() const {
    std::vector<std::string> lines;
    for (const Trial& trial : so_far_.asked) {
      const std::string parent = trial.parent == kNoTrial ? "none" : std::to_string(trial.parent);
      lines.push_back(std::to_string(trial.id) + " after " + parent + " " + trial.overrides.dump() + " " + trial.note);
    }
    if (so_far_.finished) lines.push_back("finish " + std::to_string(so_far_.best) + " " + so_far_.finish_reason);
    return lines;
  }

 private:
  // The profile's trials have the first ids and count against the limit. Observed trials are not run again.
  void go_on_after_the_profile() {
    const auto take = [this](TrialId id) { so_far_.next_id = std::max<TrialId>(so_far_.next_id, id + 1); };
    if (study_.profile.is_object()) {
      const Json trials = study_.profile.value("trials", Json::array());
      for (const Json& id : trials) take(id.get<TrialId>());
      so_far_.counted = static_cast<int64_t>(trials.size());
    }
    if (!study_.observations.is_array()) return;
    for (const Json& seen : study_.observations) {
      take(seen.at("trial").get<TrialId>());
      so_far_.known.insert_or_assign(seen.at("trial").get<TrialId>(),
                                     Known{identity_of(seen.at("config")), answer_of(seen)});
    }
  }

  void log(std::string_view text) {
    constexpr size_t kMostLines = 10000;  // the host's limit for one plugin
    const std::lock_guard<std::mutex> lock(logs_mutex_);
    if (logs_.size() < kMostLines) logs_.emplace_back(text);
  }

  static Bench& self(const dsat_host* host) { return *static_cast<Bench*>(host->host_data); }

  void make_host() {
    host_ = {};
    host_.struct_size = sizeof(dsat_host);
    host_.abi_minor = DSAT_ABI_MINOR;
    host_.host_data = this;
    host_.set_error = [](const dsat_host* h, dsat_str text) noexcept {
      if (h != nullptr && self(h).in_a_call()) self(h).message_ = detail::view(text);
    };
    host_.log = [](const dsat_host* h, int32_t, dsat_str text) noexcept {
      if (h != nullptr) self(h).log(detail::view(text));
    };
    host_.create_trial = [](const dsat_host* h, const dsat_trial_request* request, dsat_trial_id* id) noexcept {
      return op(h, "create_trial", [&](Bench& bench) { return bench.create_trial(request, id); });
    };
    host_.stop_trial = [](const dsat_host* h, dsat_trial_id id) noexcept {
      return op(h, "stop_trial", [&](Bench& bench) { return bench.stop_trial(id); });
    };
    host_.finish = [](const dsat_host* h, dsat_str reason, dsat_trial_id best) noexcept {
      return op(h, "finish", [&](Bench& bench) { return bench.finish(reason, best); });
    };
    host_.set_profile = [](const dsat_host* h, dsat_str text) noexcept {
      return op(h, "set_profile", [&](Bench& bench) { return bench.set_profile(text); });
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

  bool in_a_call() const { return caller_.load() == std::this_thread::get_id(); }

  // Runs an op if it is legal now.
  template <class Body>
  static dsat_status op(const dsat_host* host, const char* name, const Body& body) noexcept {
    if (host == nullptr) return DSAT_INVALID_ARGUMENT;
    Bench& bench = self(host);
    try {
      if (!bench.in_a_call()) return bench.refuse_stray(name);
      bench.op_ = name;
      if (!bench.pending_) return bench.refuse(DSAT_FAILED_PRECONDITION, "an op outside an event");
      if (bench.pending_->finish) return bench.refuse(DSAT_FAILED_PRECONDITION, "an op after finish");
      return body(bench);
    } catch (const std::exception& error) {
      bench.refusal_ = error.what();
      return DSAT_INTERNAL;
    }
  }

  // Another thread may call this function, so it uses only members that the mutex guards.
  dsat_status refuse_stray(const char* name) {
    const std::string line = std::string(name) + " is refused: it came outside of a call, or from another thread";
    log(line);
    const std::lock_guard<std::mutex> lock(logs_mutex_);
    stray_op_ = line;
    return DSAT_FAILED_PRECONDITION;
  }

  bool given_out(TrialId id) const { return id < so_far_.next_id + pending_->created.size(); }

  dsat_status refuse(dsat_status status, const std::string& why) {
    refusal_ = op_ + ": " + why;
    return status;
  }

  std::string identity_of(const Json& config) const {
    const bool global_batch = study_.space.is_object() && study_.space.value("micro_batch_divides", Json()).is_number();
    return rules::identity(config, global_batch);
  }

  dsat_status create_trial(const dsat_trial_request* request, dsat_trial_id* id) {
    if (request == nullptr || id == nullptr) return refuse(DSAT_INVALID_ARGUMENT, "a NULL argument");
    if (!DSAT_HAS(request, dsat_trial_request, note)) {
      return refuse(DSAT_INVALID_ARGUMENT, "a struct_size of " + std::to_string(request->struct_size));
    }
    Trial trial;
    trial.overrides = Json::parse(detail::view(request->overrides_json), nullptr, false);
    if (!trial.overrides.is_object()) return refuse(DSAT_INVALID_ARGUMENT, "overrides_json is not a JSON object");
    if (request->parent != DSAT_NO_TRIAL && !given_out(request->parent)) {
      return refuse(DSAT_NOT_FOUND, "its parent does not exist");
    }
    trial.config = study_.base_config;
    merge(trial.config, trial.overrides);
    trial.parent = request->parent;
    trial.note = detail::view(request->note);
    trial.repeat = (request->flags & DSAT_TRIAL_REPEAT) != 0;
    trial.identity = identity_of(trial.config);
    const std::optional<TrialId> original = trial.repeat ? std::nullopt : answering(trial.identity);
    trial.duplicate = original.has_value();
    trial.duplicate_of = original.value_or(kNoTrial);
    int64_t counted = so_far_.counted;
    for (const Trial& earlier : pending_->created) counted += earlier.duplicate ? 0 : 1;
    if (!trial.duplicate && counted >= study_.limits.max_trials) return DSAT_RESOURCE_EXHAUSTED;
    if (trial.duplicate && duplicates_in_a_row() >= rules::kFruitlessRequests) return DSAT_RESOURCE_EXHAUSTED;
    trial.id = so_far_.next_id + pending_->created.size();
    *id = trial.id;
    pending_->created.push_back(std::move(trial));
    return DSAT_OK;
  }

  // The number of duplicates at the end of this event's requests.
  int64_t duplicates_in_a_row() const {
    const auto& created = pending_->created;
    const auto costs_a_run = [](const Trial& trial) { return !trial.duplicate; };
    return std::find_if(created.rbegin(), created.rend(), costs_a_run) - created.rbegin();
  }

  // The earlier trial whose result answers this configuration.
  std::optional<TrialId> answering(const std::string& identity) const {
    for (const auto& [id, known] : so_far_.known) {
      if (known.identity == identity && known.holds()) return id;
    }
    for (const Trial& trial : pending_->created) {
      if (!trial.duplicate && trial.identity == identity) return trial.id;
    }
    return std::nullopt;
  }

  dsat_status stop_trial(dsat_trial_id id) {
    if (!given_out(id)) return refuse(DSAT_NOT_FOUND, "no trial " + std::to_string(id));
    pending_->stopped.push_back(id);
    return DSAT_OK;
  }

  dsat_status finish(dsat_str reason, dsat_trial_id best) {
    if (best != DSAT_NO_TRIAL && !given_out(best)) return refuse(DSAT_NOT_FOUND, "no trial " + std::to_string(best));
    pending_->finish = true;
    pending_->reason = detail::view(reason);
    pending_->best = best;
    return DSAT_OK;
  }

  // A study that already has a profile belongs to a searcher, which may not set one.
  dsat_status set_profile(dsat_str text) {
    if (study_.profile.is_object()) return refuse(DSAT_FAILED_PRECONDITION, "only a profiler has a profile");
    Json profile = Json::parse(detail::view(text), nullptr, false);
    const std::string problem = rules::profile_problem(profile);
    if (!problem.empty()) return refuse(DSAT_INVALID_ARGUMENT, problem);
    pending_->profile = std::move(profile);
    return DSAT_OK;
  }

  // Calls with the study in the form of the ABI. Its text lives as long as the call.
  template <class Call>
  dsat_status with_study(const Call& call) const {
    const std::string json = study_.to_json().dump();
    return call(dsat_study{sizeof(dsat_study), 0, study_.seed, detail::str(json)});
  }

  // Calls the strategy. Ops are refused from other threads during the call.
  template <class Body>
  dsat_status call(const Body& body) {
    message_.clear();
    refusal_.clear();
    caller_ = std::this_thread::get_id();
    const dsat_status status = body();
    caller_ = std::thread::id();
    return status;
  }

  dsat_status call_restore(std::string_view state) {
    return with_study([&](const dsat_study& raw) {
      return call([&] { return strategy_->restore(strategy_, &raw, detail::str(state)); });
    });
  }

  // Delivers one event to the strategy, and commits its ops if it succeeds.
  template <class Body>
  void event(const char* name, const Body& body) {
    pending_.emplace();
    pending_->finish = so_far_.finished;  // no op is legal after finish
    const dsat_status status = call(body);
    PendingOps done = std::move(*pending_);
    pending_.reset();
    if (status != DSAT_OK) return fail(name);
    for (Trial& trial : done.created) {
      so_far_.next_id = trial.id + 1;
      if (!trial.duplicate) {
        ++so_far_.counted;
        so_far_.known.insert_or_assign(trial.id, Known{trial.identity, std::nullopt});
      }
      so_far_.asked.push_back(trial);
      so_far_.open.push_back(std::move(trial));
    }
    so_far_.stopped.insert(so_far_.stopped.end(), done.stopped.begin(), done.stopped.end());
    if (done.profile) so_far_.profile = *done.profile;
    if (done.finish && !so_far_.finished) {
      so_far_.finished = true;
      so_far_.finish_reason = done.reason;
      so_far_.best = done.best;
    }
  }

  // Stops the trials that are open after finish. The strategy gets their exits.
  void stop_open_trials() {
    while (so_far_.finished && error_.empty() && !so_far_.open.empty()) {
      const Trial trial = so_far_.open.front();
      so_far_.open.erase(so_far_.open.begin());
      deliver({trial, {Outcome::stopped, {}, std::nullopt, "the study has ended"}});
    }
  }

  bool is_stopped(const Trial& trial) const {
    return std::find(so_far_.stopped.begin(), so_far_.stopped.end(), trial.id) != so_far_.stopped.end();
  }

  // The open trial that ends next, by its index. A duplicate takes no slot: it ends as soon as its original has ended.
  size_t next_to_end() const {
    const auto most = static_cast<size_t>(study_.limits.max_concurrent_trials);
    std::vector<size_t> running;
    for (size_t i = 0; i < so_far_.open.size(); ++i) {
      const Trial& trial = so_far_.open[i];
      if (trial.duplicate && (is_stopped(trial) || so_far_.known.at(trial.duplicate_of).answer)) return i;
      if (!trial.duplicate && running.size() < most) running.push_back(i);
    }
    return running.at(order_ ? order_(running.size()) % running.size() : 0);
  }

  Answer answer_for(const Trial& trial) {
    if (is_stopped(trial)) {
      return {Outcome::stopped, {}, std::nullopt, "stopped by the strategy"};
    }
    if (trial.duplicate) return *so_far_.known.at(trial.duplicate_of).answer;
    Answer answer = answer_(trial);
    if (answer.outcome == Outcome::invalid_config) --so_far_.counted;
    return answer;
  }

  void deliver(Ended ended) {
    so_far_.ended.push_back(ended);
    const Answer& answer = ended.answer;
    if (!ended.trial.duplicate) so_far_.known.at(ended.trial.id).answer = answer;
    if (answer.outcome == Outcome::completed) {
      std::vector<dsat_metric> metrics;
      for (const auto& [name, value] : answer.metrics) metrics.push_back({detail::str(name), value});
      const dsat_result result{sizeof(dsat_result), static_cast<uint32_t>(metrics.size()), ended.trial.id, 5,
                               metrics.data()};
      event("on_result", [&] { return strategy_->on_result(strategy_, &result); });
      if (!error_.empty()) return;
    }
    const dsat_exit exit{sizeof(dsat_exit),
                         static_cast<dsat_trial_outcome>(answer.outcome),
                         ended.trial.id,
                         answer.peak_bytes.value_or(0),
                         rules::exit_code_of(answer.outcome),
                         0,
                         1,
                         0,
                         detail::str(answer.reason),
                         answer.peak_above_bytes.value_or(0),
                         answer.allocator_retries};
    event("on_trial_exited", [&] { return strategy_->on_trial_exited(strategy_, &exit); });
  }

  // A strategy's own message often lacks the reason of a refusal. The bench adds it.
  void fail(const char* where) {
    const std::string why = refusal_.empty() ? stray_op() : refusal_;
    error_ = std::string(where) + ": " +
             (!message_.empty() ? message_
              : why.empty()     ? "failed without a message"
                                : why);
    if (!why.empty() && error_.find(why) == std::string::npos) error_ += " (" + why + ")";
  }

  Study study_;
  AnswerFunction answer_;
  std::function<size_t(size_t)> order_;
  dsat_host host_{};
  dsat_strategy* strategy_ = nullptr;
  std::optional<PendingOps> pending_;
  Progress so_far_;
  std::atomic<std::thread::id> caller_{};  // the thread of the call in progress
  std::string op_, message_, refusal_, error_;
  mutable std::mutex logs_mutex_;
  std::vector<std::string> logs_;
  std::string stray_op_;
};

}  // namespace dsat::testing

#endif  // DSAT_TESTING_H_
