// Calls a plugin's functions one at a time. Every call is announced (plugin_call.h), so that a crash is reported with
// its name. A failed call becomes an Error.
#include "plugin/plugin_strategy.h"

#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <utility>

#include "plugin/plugin_call.h"
#include "plugin/plugin_library.h"
#include "plugin/request_limits.h"

namespace dsat::host {
namespace {

void keep_for_ever(std::shared_ptr<const PluginLibrary> library) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const PluginLibrary>>;
  const std::lock_guard<std::mutex> lock(mutex);
  kept.push_back(std::move(library));
}

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

dsat_exit raw_exit(const StrategyEvent& event) {
  return {sizeof(dsat_exit),
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
}

struct State {
  std::string bytes;
  bool too_large = false;
};

dsat_status write_state(const dsat_sink* to, const void* data, size_t size) noexcept {
  if (to == nullptr || (data == nullptr && size > 0)) return DSAT_INVALID_ARGUMENT;
  State& state = *static_cast<State*>(to->ctx);
  state.too_large |= size > kMaxStateBytes - state.bytes.size();
  if (state.too_large) return DSAT_RESOURCE_EXHAUSTED;
  try {
    if (size > 0) state.bytes.append(static_cast<const char*>(data), size);
    return DSAT_OK;
  } catch (const std::exception&) {
    return DSAT_RESOURCE_EXHAUSTED;
  }
}

// Returns "" or why the strategy from create cannot be used.
std::string why_incomplete(const dsat_strategy* made) {
  if (made == nullptr) return "it is NULL";
  if (!DSAT_HAS(made, dsat_strategy, destroy)) {
    return fmt::format("its struct_size is {}, which ends before destroy: set it to sizeof(dsat_strategy)",
                       made->struct_size);
  }
  const std::pair<const char*, bool> functions[] = {{"start", made->start != nullptr},
                                                    {"on_result", made->on_result != nullptr},
                                                    {"on_trial_exited", made->on_trial_exited != nullptr},
                                                    {"destroy", made->destroy != nullptr}};
  for (const auto& [name, is_there] : functions) {
    if (!is_there) return fmt::format("its {} is NULL", name);
  }
  return "";
}

}  // namespace

PluginStrategy::PluginStrategy(const PluginInfo& plugin, uint64_t seed, Log log)
    : name_(plugin.name),
      seed_(seed),
      services_(ServiceTable::make(std::move(log), plugin.kind == PluginKind::profiler)) {}

std::unique_ptr<Strategy> PluginStrategy::create(const PluginInfo& plugin, const Json& options, uint64_t seed,
                                                 Log log) {
  std::unique_ptr<PluginStrategy> strategy(new PluginStrategy(plugin, seed, std::move(log)));
  keep_for_ever(plugin.library);
  const std::string text = options.dump();
  dsat_strategy* made = nullptr;
  strategy->call("create", "create", nullptr, [&] {
    return plugin.library->factory(plugin.kind)
        ->create(plugin.id.c_str(), strategy->services_.abi(), dsat::detail::str(text), &made);
  });
  if (const std::string why = why_incomplete(made); !why.empty()) {
    throw Error(DSAT_INTERNAL,
                fmt::format("plugin {}: create returned an incomplete strategy: {} (plugin defect)", plugin.name, why));
  }
  strategy->vtable_ = made;
  return strategy;
}

PluginStrategy::~PluginStrategy() {
  if (vtable_ != nullptr) {
    const PluginCall announced(name_, "destroy");
    services_.begin_call(nullptr);
    vtable_->destroy(vtable_);
  }
  services_.close();
}

// `what` names the call for people; an error message begins with `function`. The user can correct options that create
// refuses.
template <class Body>
void PluginStrategy::call(const char* function, const std::string& what, RequestAnswers* answers, Body&& body) {
  dsat_status status = DSAT_INTERNAL;
  {
    const PluginCall announced(name_, what);
    services_.begin_call(answers);
    status = body();
    services_.end_call();
  }
  std::string message = services_.take_error();
  if (status == DSAT_OK) return;
  if (message.empty()) {
    message = fmt::format("failed with status {} and no message (plugin defect)", static_cast<int>(status));
  }
  const bool of_options = vtable_ == nullptr && status == DSAT_INVALID_ARGUMENT;
  throw Error(of_options ? DSAT_INVALID_ARGUMENT : DSAT_INTERNAL,
              fmt::format("plugin {}: {}: {}", name_, function, message));
}

dsat_status PluginStrategy::deliver(const StrategyEvent& event) {
  switch (event.kind) {
    case StrategyEvent::Kind::start: {
      const std::string text = event.study.dump();
      const dsat_study study{sizeof(dsat_study), 0, seed_, dsat::detail::str(text)};
      return vtable_->start(vtable_, &study);
    }
    case StrategyEvent::Kind::result: {
      const RawResult raw = raw_result(event);
      return vtable_->on_result(vtable_, &raw.result);
    }
    case StrategyEvent::Kind::exited:
      break;
  }
  const dsat_exit raw = raw_exit(event);
  return vtable_->on_trial_exited(vtable_, &raw);
}

std::vector<Op> PluginStrategy::handle(const StrategyEvent& event, RequestAnswers& answers) {
  const std::string what = call_of(event);
  const std::string function = what.substr(0, what.find(' '));
  call(function.c_str(), what, &answers, [&] { return deliver(event); });
  return services_.take_ops();
}

bool PluginStrategy::can_save() const {
  return DSAT_HAS(vtable_, dsat_strategy, save) && vtable_->save != nullptr && vtable_->restore != nullptr;
}

std::string PluginStrategy::save() {
  State state;
  const dsat_sink sink{&state, &write_state};
  call("save", "save", nullptr, [&] {
    const dsat_status status = vtable_->save(vtable_, &sink);
    return state.too_large ? dsat_status{DSAT_RESOURCE_EXHAUSTED} : status;
  });
  return std::move(state.bytes);
}

void PluginStrategy::restore(const Json& study_json, const std::string& state) {
  const std::string text = study_json.dump();
  const dsat_study study{sizeof(dsat_study), 0, seed_, dsat::detail::str(text)};
  call("restore", "restore", nullptr, [&] { return vtable_->restore(vtable_, &study, dsat::detail::str(state)); });
}

}  // namespace dsat::host
