// Sends events to the plugin's process and answers its requests. A lost process is replaced; the new one gets the
// events since the last saved state and must answer with the same ops as the first time.
#include "plugin/isolated_strategy.h"

#include <fmt/format.h>

#include <utility>

#include "base/guarded.h"
#include "dsat/config/json.h"
#include "plugin/plugin_call.h"
#include "plugin/plugin_info_json.h"
#include "plugin/profile_check.h"

namespace dsat::host {
namespace {

// The answers that the requests of a past event got.
class PastAnswers : public RequestAnswers {
 public:
  PastAnswers(uint64_t next_id, const std::vector<Op>& ops) : next_id_(next_id), ops_(ops) {}
  std::optional<uint64_t> create_trial(const Op&) override {
    while (at_ < ops_.size() && ops_[at_].kind != Op::Kind::create_trial) ++at_;
    if (at_ == ops_.size()) return std::nullopt;
    const std::optional<uint64_t> id = ops_[at_++].trial;
    if (id) next_id_ = *id + 1;
    return id;
  }
  uint64_t next_id() const override { return next_id_; }

 private:
  uint64_t next_id_;
  const std::vector<Op>& ops_;
  size_t at_ = 0;
};

std::string one_line(const Json& text) {
  return text.is_string() ? bounded_line(detail::str(text.get_ref<const std::string&>())) : std::string();
}

// Throws an error that the plugin reported; its process works.
void throw_reported(const Json& answer) {
  const auto error = answer.find("error");
  if (error == answer.end()) return;
  throw Error(answer.value("code", int32_t{DSAT_INTERNAL}), one_line(*error));
}

// An op from another process is checked like one from the C interface.
bool makes_sense(const Op& op, const RequestAnswers& answers, PluginKind kind) {
  switch (op.kind) {
    case Op::Kind::create_trial:
      return op.overrides.is_object() && (!op.parent || answers.knows_trial(*op.parent));
    case Op::Kind::stop_trial:
      return op.trial && answers.knows_trial(*op.trial);
    case Op::Kind::finish:
      return !op.trial || answers.knows_trial(*op.trial);
    case Op::Kind::set_profile:
      return kind == PluginKind::profiler && op.profile.is_object() && profile_problem(op.profile).empty();
  }
  return false;
}

Op op_of(const Json& json) {
  Op op = op_from_json(json);
  op.note = bounded_line(detail::str(op.note));
  op.reason = bounded_line(detail::str(op.reason));
  return op;
}

}  // namespace

IsolatedStrategy::IsolatedStrategy(const PluginInfo& plugin, const Json& options, uint64_t seed,
                                   const PluginProcesses& settings, Log log, int most_restarts)
    : plugin_(plugin),
      options_(options),
      seed_(seed),
      settings_(settings),
      log_(std::move(log)),
      most_restarts_(most_restarts) {}

std::unique_ptr<Strategy> IsolatedStrategy::create(const PluginInfo& plugin, const Json& options, uint64_t seed,
                                                   const PluginProcesses& settings, Log log, int most_restarts) {
  std::unique_ptr<IsolatedStrategy> strategy(
      new IsolatedStrategy(plugin, options, seed, settings, std::move(log), most_restarts));
  strategy->surviving("create", nullptr, [] {});
  return strategy;
}

IsolatedStrategy::~IsolatedStrategy() {
  if (!process_) return;
  const PluginCall announced(plugin_.name, "destroy", PluginCall::Where::apart);
  const std::string how = process_->end();
  if (!how.empty()) log_(2, fmt::format("plugin {}: destroy: its process {}", plugin_.name, how));
}

void IsolatedStrategy::log(int severity, std::string line) {
  if (!muted_ && log_limit_.admits(line)) log_(severity, line);
}

// Runs `body` with the process and, if the process is lost, again with a new one.
template <class Body>
auto IsolatedStrategy::surviving(const std::string& what, RequestAnswers* answers, Body&& body) -> decltype(body()) {
  while (true) {
    try {
      const PluginCall announced(plugin_.name, what, PluginCall::Where::apart);
      log_limit_.begin_call();
      if (!process_) {
        start();
        rebuild();
      }
      return body();
    } catch (const ProcessFailed& failure) {
      process_.reset();
      muted_ = false;
      if (restarts_ == most_restarts_) {
        const std::string again = restarts_ == 0 ? "" : fmt::format("; it had been restarted {} times", restarts_);
        throw PluginLost(fmt::format("plugin {}: {}: its process {}{}", plugin_.name, what, failure.what(), again));
      }
      ++restarts_;
      log_(2, fmt::format("plugin {}: {}: its process {}; restart {} of {}", plugin_.name, what, failure.what(),
                          restarts_, most_restarts_));
      if (answers != nullptr) answers->begin_again();
    }
  }
}

bool IsolatedStrategy::is_log(const Json& message) {
  if (!message.contains("log")) return false;
  log(config::whole_number<int>(message["log"]), one_line(message.at("line")));
  return true;
}

// Returns the answer to a request during which the plugin can ask for nothing.
Json IsolatedStrategy::await_answer(const Json& request, const std::optional<std::string>& bytes) {
  Json answer;
  const auto on_message = [&](const Message& message) {
    answer = message.json();
    return !is_log(answer);
  };
  process_->call(request, on_message, bytes);
  throw_reported(answer);
  return answer;
}

void IsolatedStrategy::start() {
  process_ = std::make_unique<PluginProcess>(settings_, plugin_.file, [this](const std::string& line) {
    log(1, fmt::format("{} printed: {}", plugin_.name, line));
  });
  const Json answer = await_answer({{"call", "create"},
                                    {"file", plugin_.file.string()},
                                    {"kind", static_cast<int>(plugin_.kind)},
                                    {"id", plugin_.id},
                                    {"options", options_},
                                    {"seed", seed_}});
  can_save_ = answer.value("can_save", false);
}

void IsolatedStrategy::restore_state(const Json& study, const std::string& state) {
  await_answer({{"call", "restore"}, {"study", study}}, state);
}

void IsolatedStrategy::rebuild() {
  muted_ = true;
  try {
    if (state_) restore_state(study_, *state_);
  } catch (const Error& refused) {  // only the journal has the events before that state
    throw Error(refused.code(), fmt::format("{}; its process was lost, and its saved state cannot be restored: replay "
                                            "its events with dsat-host resume",
                                            refused.what()));
  }
  for (const Past& past : since_) {
    PastAnswers answers(past.next_id, past.ops);
    if (to_json(deliver(past.event, answers)) == to_json(past.ops)) continue;
    throw Error(
        DSAT_INTERNAL,
        fmt::format("plugin {}: {}: it is not deterministic: after a restart it gave other answers to the same events",
                    plugin_.name, call_of(past.event)));
  }
  muted_ = false;
}

std::vector<Op> IsolatedStrategy::deliver(const StrategyEvent& event, RequestAnswers& answers) {
  std::vector<Op> asked;
  Json last;
  const Json request{{"call", "event"}, {"event", to_json(event)}, {"known", answers.next_id()}};
  process_->call(request, [&](const Message& message) {
    last = message.json();
    if (is_log(last)) return false;
    if (!last.contains("ask")) return true;
    if (asked.size() >= kMaxOpsPerEvent) throw ProcessFailed("has asked for too many trials");
    Op op = op_of(last.at("request"));
    if (op.kind != Op::Kind::create_trial || !makes_sense(op, answers, plugin_.kind)) {
      throw ProcessFailed("has asked for a trial that makes no sense");
    }
    op.trial = answers.create_trial(op);
    op.refused = !op.trial.has_value();
    asked.push_back(op);
    process_->send(framed({{"trial", op.trial ? Json(*op.trial) : Json()}}));
    return false;
  });
  throw_reported(last);
  std::vector<Op> ops;
  size_t next = 0;
  try {
    for (const Json& entry : last.at("ops")) {
      Op op = op_of(entry);
      if (op.kind == Op::Kind::create_trial && next < asked.size()) {
        op = asked[next++];
      } else if (op.kind == Op::Kind::create_trial || !makes_sense(op, answers, plugin_.kind)) {
        throw ProcessFailed("has sent ops that make no sense");
      }
      ops.push_back(std::move(op));
    }
  } catch (const Json::exception&) {
    throw ProcessFailed("has sent ops that make no sense");
  } catch (const Error&) {
    throw ProcessFailed("has sent ops that make no sense");
  }
  if (next != asked.size()) throw ProcessFailed("has sent ops that make no sense");
  return ops;
}

std::vector<Op> IsolatedStrategy::handle(const StrategyEvent& event, RequestAnswers& answers) {
  const uint64_t next_id = answers.next_id();
  std::vector<Op> ops = surviving(call_of(event), &answers, [&] { return deliver(event, answers); });
  since_.push_back({event, ops, next_id});
  return ops;
}

std::string IsolatedStrategy::save() {
  Message answer;
  surviving("save", nullptr, [&] {
    process_->call({{"call", "save"}}, [&](const Message& message) {
      answer = message;
      return message.kind == Message::Kind::bytes || !is_log(message.json());
    });
  });
  if (answer.kind == Message::Kind::json) {
    throw_reported(answer.json());
    throw Error(DSAT_INTERNAL, fmt::format("plugin {}: save: its process has sent no state", plugin_.name));
  }
  if (!since_.empty() && since_.front().event.kind == StrategyEvent::Kind::start) study_ = since_.front().event.study;
  state_ = answer.body;
  since_.clear();
  return std::move(answer.body);
}

void IsolatedStrategy::restore(const Json& study, const std::string& state) {
  surviving("restore", nullptr, [&] { restore_state(study, state); });
  study_ = study;
  state_ = state;
  since_.clear();
}

std::vector<PluginInfo> describe_apart(const std::filesystem::path& file, const PluginProcesses& settings) {
  const PluginCall announced(file.string(), "describe", PluginCall::Where::apart);
  std::vector<PluginInfo> plugins;
  std::string printed;  // the last line
  try {
    PluginProcess process(settings, file, [&](const std::string& line) { printed = line; });
    Json answer;
    process.call({{"call", "describe"}, {"file", file.string()}}, [&](const Message& message) {
      answer = message.json();
      return true;
    });
    throw_reported(answer);
    for (const Json& entry : answer.at("plugins")) plugins.push_back(plugin_info_from_json(entry));
  } catch (const ProcessFailed& failure) {
    const std::string last_words = printed.empty() ? "" : fmt::format("; it printed '{}'", printed);
    throw PluginLost(fmt::format("plugin {}: a process that loads it {}{}", file.string(), failure.what(), last_words));
  } catch (const Json::exception&) {
    throw Error(DSAT_INTERNAL,
                fmt::format("plugin {}: a process that loads it has sent no description", file.string()));
  } catch (const Error& error) {
    if (error.code() != DSAT_DATA_LOSS) throw;
    throw Error(DSAT_INTERNAL, fmt::format("plugin {}: {}", file.string(), error.what()));
  }
  for (PluginInfo& plugin : plugins) plugin.file = file;
  return plugins;
}

bool try_apart(const std::filesystem::path& file, const PluginProcesses& settings, const std::function<void()>& body) {
  const bool can_run = as_result([&] { return find_plugin_host(settings.plugin_host); }).ok();
  if (!can_run || is_bundled_plugin(file)) return false;
  try {
    body();
  } catch (const PluginLost&) {
    throw;
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace dsat::host
