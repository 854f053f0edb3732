// Calls into one strategy of a plugin, and is called by it: every op is checked and collected, every status becomes an
// exception on the host's side and every exception a status on the plugin's.
#include "plugin/strategy.h"

#include <fmt/format.h>

#include <cmath>

namespace dsat::host {

// The host as the plugin sees it. Its functions are noexcept: what they throw becomes a status.
struct PluginStrategy::HostSide {
  dsat_host abi{};
  Log log;
  bool profiler = false;
  RequestAnswers* answers = nullptr;  // while an event is handled
  bool finished = false;
  std::string error;
  std::vector<Op> ops;

  HostSide(Log given, bool is_profiler) : log(std::move(given)), profiler(is_profiler) {
    abi.struct_size = sizeof(dsat_host);
    abi.abi_minor = DSAT_ABI_MINOR;
    abi.host_data = this;
    abi.set_error = [](const dsat_host* host, dsat_str message) noexcept {
      self(host).error = one_line(dsat::detail::view(message));
    };
    abi.log = [](const dsat_host* host, int32_t severity, dsat_str message) noexcept {
      self(host).log(severity, one_line(dsat::detail::view(message)));
    };
    abi.create_trial = [](const dsat_host* host, const dsat_trial_request* request, dsat_trial_id* id) noexcept {
      return self(host).guarded([&](HostSide& side) { return side.create_trial(*request, id); });
    };
    abi.stop_trial = [](const dsat_host* host, dsat_trial_id trial) noexcept {
      return self(host).guarded([&](HostSide& side) { return side.stop_trial(trial); });
    };
    abi.finish = [](const dsat_host* host, dsat_str reason, dsat_trial_id best) noexcept {
      return self(host).guarded([&](HostSide& side) { return side.finish(reason, best); });
    };
    abi.set_profile = [](const dsat_host* host, dsat_str profile) noexcept {
      return self(host).guarded([&](HostSide& side) { return side.set_profile(profile); });
    };
    abi.get_extension = [](const dsat_host*, const char*) noexcept -> const void* { return nullptr; };
  }

  static HostSide& self(const dsat_host* host) { return *static_cast<HostSide*>(host->host_data); }

  static std::string one_line(std::string_view text) {
    std::string line(text);
    for (char& c : line) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    return line;
  }

  template <class Body>
  dsat_status guarded(Body&& body) noexcept {
    try {
      if (answers == nullptr) return refuse(DSAT_FAILED_PRECONDITION, "an op outside an event");
      if (finished) return refuse(DSAT_FAILED_PRECONDITION, "an op after finish");
      return body(*this);
    } catch (const std::exception& e) {
      error = e.what();
      return DSAT_INTERNAL;
    }
  }

  dsat_status refuse(dsat_status status, const std::string& why) {
    error = why;
    return status;
  }

  dsat_status create_trial(const dsat_trial_request& request, dsat_trial_id* id) {
    Op op;
    op.overrides = Json::parse(dsat::detail::view(request.overrides_json), nullptr, false);
    if (!op.overrides.is_object())
      return refuse(DSAT_INVALID_ARGUMENT, "create_trial: overrides_json is not a JSON object");
    if (request.parent != DSAT_NO_TRIAL) {
      if (!answers->knows_trial(request.parent))
        return refuse(DSAT_NOT_FOUND, "create_trial: its parent does not exist");
      op.parent = request.parent;
    }
    op.repeat = (request.flags & DSAT_TRIAL_REPEAT) != 0;
    op.note = one_line(dsat::detail::view(request.note));
    op.trial = answers->create_trial(op);
    op.refused = !op.trial.has_value();
    ops.push_back(op);
    if (op.refused) return DSAT_RESOURCE_EXHAUSTED;
    *id = *op.trial;
    return DSAT_OK;
  }

  dsat_status stop_trial(dsat_trial_id trial) {
    if (!answers->knows_trial(trial)) return refuse(DSAT_NOT_FOUND, fmt::format("stop_trial: no trial {}", trial));
    Op op;
    op.kind = Op::Kind::stop_trial;
    op.trial = trial;
    ops.push_back(op);
    return DSAT_OK;
  }

  dsat_status finish(dsat_str reason, dsat_trial_id best) {
    Op op;
    op.kind = Op::Kind::finish;
    op.reason = one_line(dsat::detail::view(reason));
    if (best != DSAT_NO_TRIAL) {
      if (!answers->knows_trial(best)) return refuse(DSAT_NOT_FOUND, fmt::format("finish: no trial {}", best));
      op.trial = best;
    }
    ops.push_back(op);
    finished = true;
    return DSAT_OK;
  }

  dsat_status set_profile(dsat_str text) {
    if (!profiler) return refuse(DSAT_FAILED_PRECONDITION, "set_profile: only a profiler has a profile");
    Op op;
    op.kind = Op::Kind::set_profile;
    op.profile = Json::parse(dsat::detail::view(text), nullptr, false);
    if (!op.profile.is_object()) return refuse(DSAT_INVALID_ARGUMENT, "set_profile: profile_json is not a JSON object");
    ops.push_back(op);
    return DSAT_OK;
  }
};

std::unique_ptr<Strategy> PluginStrategy::create(const PluginInfo& plugin, const Json& options, uint64_t seed,
                                                 Log log) {
  std::unique_ptr<PluginStrategy> strategy(new PluginStrategy);
  strategy->library_ = plugin.library;
  strategy->name_ = plugin.name;
  strategy->seed_ = seed;
  if (plugin.abi_minor < 2) strategy->exit_size_ = offsetof(dsat_exit, peak_above_bytes);
  strategy->host_ = std::make_unique<HostSide>(std::move(log), plugin.kind == PluginKind::profiler);
  const std::string text = options.dump();
  dsat_strategy* made = nullptr;
  strategy->check("create", plugin.library->factory(plugin.kind)
                                ->create(plugin.id.c_str(), &strategy->host_->abi, dsat::detail::str(text), &made));
  if (made == nullptr || !DSAT_HAS(made, dsat_strategy, destroy) || made->start == nullptr ||
      made->on_result == nullptr || made->on_trial_exited == nullptr || made->destroy == nullptr) {
    throw Error(DSAT_INTERNAL,
                fmt::format("plugin {}: create returned an incomplete strategy (plugin defect)", plugin.name));
  }
  strategy->vtable_ = made;
  return strategy;
}

PluginStrategy::~PluginStrategy() {
  if (vtable_ != nullptr) vtable_->destroy(vtable_);
}

// Throws what a call into the plugin left as its error.
void PluginStrategy::check(const char* function, dsat_status status) {
  std::string message;
  std::swap(message, host_->error);
  if (status == DSAT_OK) return;
  if (message.empty()) {
    message = fmt::format("failed with status {} and no message (plugin defect)", static_cast<int>(status));
  }
  throw Error(DSAT_INTERNAL, fmt::format("plugin {}: {}: {}", name_, function, message));
}

namespace {

struct RawResult {
  std::vector<dsat_metric> metrics;
  dsat_result result{};
};

RawResult raw_result(const StrategyEvent& event) {
  RawResult raw;
  for (const auto& item : event.metrics.items()) {
    if (!item.value().is_number()) continue;
    const double value = item.value().get<double>();
    if (std::isfinite(value)) raw.metrics.push_back({dsat::detail::str(item.key()), value});
  }
  raw.result = {sizeof(dsat_result), static_cast<uint32_t>(raw.metrics.size()), event.trial, event.step,
                raw.metrics.data()};
  return raw;
}

}  // namespace

std::vector<Op> PluginStrategy::handle(const StrategyEvent& event, RequestAnswers& answers) {
  host_->ops.clear();
  host_->answers = &answers;
  dsat_status status = DSAT_OK;
  const char* function = "start";
  switch (event.kind) {
    case StrategyEvent::Kind::start: {
      const std::string text = event.study.dump();
      const dsat_study study{sizeof(dsat_study), 0, seed_, dsat::detail::str(text)};
      status = vtable_->start(vtable_, &study);
      break;
    }
    case StrategyEvent::Kind::result: {
      function = "on_result";
      const RawResult raw = raw_result(event);
      status = vtable_->on_result(vtable_, &raw.result);
      break;
    }
    case StrategyEvent::Kind::exited: {
      function = "on_trial_exited";
      const dsat_exit raw{exit_size_,
                          event.outcome,
                          event.trial,
                          event.peak_bytes,
                          event.exit_code,
                          event.term_signal,
                          event.attempt,
                          0,
                          dsat::detail::str(event.reason),
                          event.peak_above_bytes,
                          event.allocator_retries};
      status = vtable_->on_trial_exited(vtable_, &raw);
      break;
    }
  }
  host_->answers = nullptr;
  check(function, status);
  return std::move(host_->ops);
}

bool PluginStrategy::can_save() const { return vtable_->save != nullptr && vtable_->restore != nullptr; }

std::string PluginStrategy::save() {
  std::string state;
  dsat_sink sink{&state, [](const dsat_sink* to, const void* data, size_t size) noexcept -> dsat_status {
                   try {
                     static_cast<std::string*>(to->ctx)->append(static_cast<const char*>(data), size);
                     return DSAT_OK;
                   } catch (...) {
                     return DSAT_RESOURCE_EXHAUSTED;
                   }
                 }};
  check("save", vtable_->save(vtable_, &sink));
  return state;
}

void PluginStrategy::restore(const Json& study_json, const std::string& state) {
  const std::string text = study_json.dump();
  const dsat_study study{sizeof(dsat_study), 0, seed_, dsat::detail::str(text)};
  check("restore", vtable_->restore(vtable_, &study, dsat::detail::str(state)));
}

}  // namespace dsat::host
