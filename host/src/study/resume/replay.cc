// Opens the strategy, restores its state, and hands over the events that the state does not contain.
#include "study/resume/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "dsat/base/shell.h"
#include "dsat/base/utf8.h"
#include "dsat/config/json.h"

namespace dsat::host {
namespace {

// Answers a strategy's requests as they were answered the first time.
class RecordedAnswers : public RequestAnswers {
 public:
  explicit RecordedAnswers(uint64_t first_id) : next_id_(first_id) {}

  std::optional<uint64_t> create_trial(const Op&) override {
    if (answers_.empty()) return std::nullopt;
    const std::optional<uint64_t> answer = answers_.front();
    answers_.pop_front();
    if (answer) next_id_ = *answer + 1;
    return answer;
  }
  uint64_t next_id() const override { return next_id_; }
  void begin_again() override { answers_ = loaded_, next_id_ = id_at_load_; }

  // The answers to the requests of one event.
  void load(const std::vector<Op>& ops) {
    answers_.clear();
    for (const Op& op : ops) {
      if (op.kind == Op::Kind::create_trial) answers_.push_back(op.refused ? std::nullopt : op.trial);
    }
    loaded_ = answers_;
    id_at_load_ = next_id_;
  }
  // Gives out all answers as if the strategy had asked for them.
  void skip() {
    while (!answers_.empty()) create_trial(Op());
  }

 private:
  std::deque<std::optional<uint64_t>> answers_, loaded_;
  uint64_t next_id_, id_at_load_ = 0;
};

// Gives a new strategy its last saved state. Returns how many of the events that state contains: 0 without one.
size_t restore_state(StrategyRun& run, const Plan& plan, int max_trials, const std::vector<JournalEvent>& events,
                     Journal& journal) {
  if (!is_of_plugin(run.phase)) return 0;
  const StrategyPlan& chosen = strategy_plan(plan, run.phase);
  const bool usable = chosen.plugin.state_version == chosen.journalled_state_version;
  const std::optional<SavedState> saved = journal.state(run.phase, events.back().seq);
  if (!saved || !usable || saved->seq < events.front().seq || !run.strategy->can_save()) return 0;
  const auto later =
      std::find_if(events.begin(), events.end(), [&](const JournalEvent& entry) { return entry.seq > saved->seq; });
  Json study = events.front().event.study;
  // The new limit applies only if no event is replayed: under another limit the replayed answers might differ.
  if (later == events.end()) study["limits"]["max_trials"] = max_trials;
  run.strategy->restore(study, saved->state);
  return static_cast<size_t>(later - events.begin());
}

// Shows both answers and the first byte that differs: they may be long and alike.
std::string both_answers(const std::string& then, const std::string& now) {
  constexpr size_t kShown = 200;
  const auto end = std::mismatch(then.begin(), then.end(), now.begin(), now.end()).first;
  return fmt::format("was answered with {} and is now answered with {} (they differ from byte {} on)",
                     shortened(then, kShown), shortened(now, kShown), end - then.begin() + 1);
}

// Another searcher can take over the trials of a search. There is no such way out if the profiler has changed.
void replay_event(Strategy& strategy, const JournalEvent& entry, RecordedAnswers& answers,
                  const std::filesystem::path& dir) {
  const std::string now = config::text_of(to_json(strategy.handle(entry.event, answers)));
  if (now == entry.ops_text) return;
  const std::string remedy =
      entry.phase >= Phase::searcher
          ? fmt::format("`dsat-host resume {} --searcher guided` goes on with all that was measured",
                        shell_quote(dir.string()))
          : "start a new study";
  throw Error(DSAT_INTERNAL,
              fmt::format("replay_mismatch: event {} {}; the plugin has changed or is not deterministic; everything is "
                          "kept: {}",
                          entry.seq, both_answers(entry.ops_text, now), remedy));
}

}  // namespace

StrategyRun replay_strategy(const Plan& plan, const std::vector<JournalEvent>& events, uint64_t first_id,
                            int max_trials, Journal& journal, PluginLog& log, Observer& observer) {
  StrategyRun run;
  run.phase = events.back().phase;
  run.strategy = open_strategy(plan, run.phase, log);
  run.started = true;
  size_t contained = 0;
  try {
    const PluginLog::Muted muted(log);
    contained = restore_state(run, plan, max_trials, events, journal);
  } catch (const Error& error) {
    observer.on_log(Observer::Severity::warning, fmt::format("{}; its events are replayed instead", error.what()));
    run.strategy.reset();
    run.strategy = open_strategy(plan, run.phase, log);
  }
  run.idle_since_restored = contained > 0;
  const PluginLog::Muted muted(log);
  RecordedAnswers answers(first_id);
  for (size_t i = 0; i < events.size(); ++i) {
    const JournalEvent& entry = events[i];
    answers.load(entry.ops);
    if (i < contained) {
      answers.skip();
    } else {
      replay_event(*run.strategy, entry, answers, plan.dir);
    }
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::finish) run.finish = op;
      if (op.kind == Op::Kind::create_trial && i >= contained) run.idle_since_restored = false;
    }
  }
  if (events.back().event.kind == StrategyEvent::Kind::result) run.result_delivered = events.back().event.trial;
  return run;
}

}  // namespace dsat::host
