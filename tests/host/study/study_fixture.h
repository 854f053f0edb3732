// What the tests of a study share: a folder, plans made of scripts, a runner without processes, one session of a host.
#ifndef DSAT_TESTS_HOST_STUDY_STUDY_FIXTURE_H_
#define DSAT_TESTS_HOST_STUDY_STUDY_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/guarded.h"
#include "dsat/config/batch.h"
#include "plan/plan.h"
#include "record/journal.h"
#include "study/resume/resumed_state.h"
#include "study/turn/coordinator.h"
#include "study/turn/strategy_events.h"
#include "support/temp_dir.h"

namespace dsat::host {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

inline fs::path fixture_plugin(const std::string& name) {
  return fs::path(DSAT_FIXTURE_PLUGINS) / ("lib" + name + ".so");
}

inline PluginProcesses in_this_process() {
  PluginProcesses processes;
  processes.isolation = Isolation::none;
  return processes;
}

inline int64_t micro_batch(const Json& config) { return config.value(config::kMicroBatchKey, int64_t{0}); }

// {"train_micro_batch_size_per_gpu": n}, as an op of the scripted plugins.
inline Json try_micro_batch(int64_t n) { return {{"try", {{config::kMicroBatchKey, n}}}}; }

inline TrialEnd completed(double throughput) {
  TrialEnd end;
  end.outcome = Outcome::completed;
  end.exit_code = 0;
  end.step = 5;
  end.metrics = {{"throughput", throughput}, {"latency", 1e6 / throughput}};
  return end;
}

inline TrialEnd failed(Outcome outcome, const std::string& last_line) {
  TrialEnd end;
  end.outcome = outcome;
  end.exit_code = 1;
  end.reason = last_line;
  end.last_line = last_line;
  end.tail = {"Traceback:", last_line};
  return end;
}

// Ends one running trial in every round of the loop.
class FakeRunner : public Runner {
 public:
  explicit FakeRunner(Loop& loop) : loop_(loop) {}

  std::function<TrialEnd(const TrialSpec&)> answer = [](const TrialSpec& spec) {
    return completed(static_cast<double>(100 + micro_batch(spec.config)));
  };
  std::function<size_t(size_t running)> pick = [](size_t) { return size_t{0}; };  // which one ends next
  std::function<std::optional<TrialEnd>(const TrialSpec&)> left = [](const TrialSpec&) { return std::nullopt; };
  std::function<std::string(const TrialSpec&)> written = [](const TrialSpec&) { return std::string(); };
  std::function<bool(const TrialSpec&)> adopts = [](const TrialSpec&) { return false; };  // it still runs
  std::function<void()> before_each_step = [] {};  // everything so far is in the journal
  std::function<void()> when_all_held = [] {};     // nothing can end by itself
  std::function<Status(const TrialSpec&)> refuse = [](const TrialSpec&) { return Status(); };
  std::set<uint64_t> held;  // ids that end only when stopped
  int capacity = 64;
  std::chrono::milliseconds group{0};  // turns of so long share a transaction

  std::chrono::milliseconds commit_delay() const override { return group; }
  std::vector<TrialSpec> started;
  std::vector<std::pair<uint64_t, bool>> stopped;  // id, at once
  std::vector<uint64_t> moved, dismissed;          // to run elsewhere; not to run after all
  size_t most_at_once = 0;
  std::string started_at;  // of all trials; empty: when they start

  bool has_room_for(const std::vector<const Json*>& configs) const override {
    return running_.size() + configs.size() <= static_cast<size_t>(capacity);
  }
  void start(const TrialSpec& spec) override {
    before_each_step();
    or_throw(refuse(spec));
    started.push_back(spec);
    running_.push_back(spec);
    most_at_once = std::max(most_at_once, running_.size());
    schedule();
  }
  void stop(uint64_t id, bool at_once) override {
    stopped.emplace_back(id, at_once);
    stopping_.insert(id);
    schedule();
  }
  void run_elsewhere(uint64_t id) override { moved.push_back(id); }
  void will_not_run(const TrialEnd& end) override { dismissed.push_back(end.id); }
  std::optional<TrialEnd> find_end(const TrialSpec& spec) override {
    std::optional<TrialEnd> end = left(spec);
    if (end) complete(*end, spec);
    return end;
  }
  bool adopt(const TrialSpec& spec) override {
    if (!adopts(spec)) return false;
    running_.push_back(spec);
    schedule();
    return true;
  }
  std::string last_written_at(const TrialSpec& spec) override { return written(spec); }
  void look_again() { schedule(); }
  void release() {
    held.clear();
    schedule();
  }
  std::vector<uint64_t> started_ids() const {
    std::vector<uint64_t> ids;
    for (const TrialSpec& spec : started) ids.push_back(spec.id);
    return ids;
  }

 private:
  void schedule() {
    if (scheduled_) return;
    scheduled_ = true;
    loop_.at(Loop::Clock::now(), [this] { step(); });
  }
  void complete(TrialEnd& end, const TrialSpec& spec) const {
    end.id = spec.id;
    end.attempt = spec.attempt;
    if (end.ended_at.empty()) end.ended_at = utc_now();
  }
  void step() {
    scheduled_ = false;
    before_each_step();
    for (const TrialSpec& spec : running_) {
      if (started_.insert({spec.id, spec.attempt}).second)
        on_started({spec.id, spec.attempt, {"0"}, started_at.empty() ? utc_now() : started_at});
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < running_.size(); ++i) {
      const uint64_t id = running_[i].id;
      if (stopping_.count(id) != 0) {
        ready = {i};
        break;
      }
      if (held.count(id) == 0) ready.push_back(i);
    }
    if (ready.empty()) return when_all_held();
    const size_t index = ready.size() == 1 ? ready[0] : ready[pick(ready.size()) % ready.size()];
    const TrialSpec spec = running_[index];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    const bool stopped_now = stopping_.erase(spec.id) != 0;
    TrialEnd end = stopped_now && !answers_when_stopped ? failed(Outcome::stopped, "") : answer(spec);
    complete(end, spec);
    if (!running_.empty()) schedule();
    on_ended(end);
  }

 public:
  bool answers_when_stopped = false;  // ends in its own way although it was asked to stop

 private:
  Loop& loop_;
  bool scheduled_ = false;
  std::vector<TrialSpec> running_;
  std::set<uint64_t> stopping_;
  std::set<std::pair<uint64_t, uint32_t>> started_;
};

// Keeps what a study logs, and the ids of its trials in the order of their ends.
class StudyLog : public Observer {
 public:
  void on_log(Severity severity, std::string_view message) override { logs.emplace_back(severity, message); }
  void on_trial_ended(const TrialRecord& trial) override { ended.push_back(trial.id); }
  void on_closing() override { when_closing(); }
  bool logged(const std::string& part) const {
    return std::any_of(logs.begin(), logs.end(),
                       [&](const auto& line) { return line.second.find(part) != std::string::npos; });
  }
  std::vector<std::pair<Severity, std::string>> logs;
  std::vector<uint64_t> ended;
  std::function<void()> when_closing = [] {};
};

// One life of a host over a run directory.
struct Session {
  explicit Session(const Plan& given)
      : plan(given), results([](const Json&) { return std::string("train"); }), runner(loop) {}

  StudyResult run_new() {
    return result_of([&] {
      fs::create_directories(plan.dir);
      journal = Journal::create(plan.dir);
      journal->begin();
      journal->put_meta("plan", to_json(plan));
      journal->put_meta("settings", settings_of(plan));
      journal->put_meta("max_trials", plan.max_trials);
      journal->commit();
      return run(StudyState(plan));
    });
  }

  StudyResult resume() {
    return result_of([&] {
      journal = Journal::open(plan.dir, Journal::Mode::open);
      return run(resumed_state(*journal, plan, terms, plugin_log, observer, loop));
    });
  }
  StudyResult run(StudyState state) {
    coordinator = std::make_unique<AtWork>(*this, std::move(state));
    return coordinator->coordinator.run();
  }

  // Ends this life: what works on the journal goes before it.
  void close_journal() {
    coordinator.reset();
    journal.reset();
  }

  void request_stop() {
    ++stop_level;
    loop.wake();
  }

  static StudyResult result_of(const std::function<StudyResult()>& body) {
    try {
      return body();
    } catch (const Error& error) {
      StudyResult result;
      result.reason = error.what();
      return result;
    }
  }

  std::vector<Trial> trials() const { return Journal::open(plan.dir, Journal::Mode::read_only)->trials(); }

  // The events of a strategy, in order: "start", "result 3", "exit 3 completed".
  std::vector<std::string> deliveries(Phase phase = Phase::searcher) const {
    std::vector<std::string> lines;
    const auto db = Journal::open(plan.dir, Journal::Mode::read_only);
    const std::vector<JournalEvent> events = db->events();
    for (const JournalEvent& entry : events) {
      if (entry.phase != phase) continue;
      const StrategyEvent& event = entry.event;
      lines.push_back(event.kind == StrategyEvent::Kind::start    ? "start"
                      : event.kind == StrategyEvent::Kind::result ? "result " + std::to_string(event.trial)
                                                                  : "exit " + std::to_string(event.trial) + " " +
                                                                        to_string(static_cast<Outcome>(event.outcome)));
    }
    return lines;
  }

  Plan plan;
  ResumeTerms terms;
  Loop loop;
  PluginLog plugin_log{loop};
  Results results;
  FakeRunner runner;
  StudyLog observer;
  std::atomic<int> stop_level{0};
  std::unique_ptr<Journal> journal;
  struct AtWork {
    AtWork(Session& s, StudyState state)
        : turns(*s.journal, s.loop, s.observer, s.stop_level),
          coordinator(std::move(state), {turns, s.runner, s.loop, s.results, s.observer, s.plugin_log, s.stop_level}) {}
    TurnJournal turns;
    Coordinator coordinator;
  };
  std::unique_ptr<AtWork> coordinator;
};

// The description of a study that a searcher gets at its start.
inline Json description_for_search(const Plan& plan) {
  StudyState state(plan);
  state.run.phase = Phase::searcher;
  return describe_study(state);
}

class StudyTest : public TempDirTest {
 protected:
  StudyTest() { write_text(dir() / "ds_config.json", R"({"train_micro_batch_size_per_gpu": 1})"); }

  StudyOptions options(const std::string& searcher = "scripted", const Json& searcher_options = Json::object()) const {
    StudyOptions options;
    options.command = {"/bin/true", "--deepspeed_config", (dir() / "ds_config.json").string()};
    options.cwd = dir();
    options.environment = {"PATH=/bin"};
    options.searcher = {fixture_plugin(searcher).string(), searcher_options};
    options.profiler = {fixture_plugin("scripted").string(), Json::object()};
    options.metric = "throughput";
    options.slots = 16;
    options.slots_per_trial = 1;
    options.output_dir = dir() / "run";
    options.baseline = false;  // a script counts its trials
    options.finals = 0;
    options.max_restarts = 0;
    options.launcher = DSAT_LAUNCH;
    options.isolation = Isolation::none;
    return options;
  }

  StudyOptions scripted(const Json& script) const { return options("scripted", {{"script", script.dump()}}); }

  static Plan plan_of(const StudyOptions& options) { return make_plan(options); }
  static Plan resumed_plan(const fs::path& run_dir) {
    const auto db = Journal::open(run_dir, Journal::Mode::read_only);
    Plan plan = plan_from_json(*db->meta("plan"));
    plan.dir = run_dir;
    load_plugin(plan.profiler, plan, true);
    load_plugin(plan.searcher, plan, true);
    return plan;
  }
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_STUDY_STUDY_FIXTURE_H_
