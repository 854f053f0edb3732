// Calls through the C interface become events for the process, and its requests become calls of the bench.
#include "validate/apart_factory.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "dsat/error.h"
#include "dsat/searcher.h"
#include "plugin/isolated_strategy.h"

namespace dsat::host {
namespace {

PluginInfo g_plugin;

struct ApartStrategy {
  dsat_strategy interface {};
  const dsat_host* host = nullptr;
  Json options;
  std::unique_ptr<Strategy> inner;
  uint64_t next_id = 0;
};

ApartStrategy& self(dsat_strategy* strategy) { return *static_cast<ApartStrategy*>(strategy->plugin_data); }

// Asks the bench for trials while the plugin waits.
class AskBench : public RequestAnswers {
 public:
  explicit AskBench(ApartStrategy& strategy) : strategy_(strategy) {}
  std::optional<uint64_t> create_trial(const Op& op) override {
    const std::string overrides = op.overrides.dump();
    const dsat_trial_request request{sizeof(dsat_trial_request), op.repeat ? uint32_t{DSAT_TRIAL_REPEAT} : 0u,
                                     op.parent.value_or(DSAT_NO_TRIAL), dsat::detail::str(overrides),
                                     dsat::detail::str(op.note)};
    dsat_trial_id id = DSAT_NO_TRIAL;
    const dsat_status status = strategy_.host->create_trial(strategy_.host, &request, &id);
    if (status == DSAT_RESOURCE_EXHAUSTED) return std::nullopt;
    if (status != DSAT_OK) throw Error(status, "create_trial was refused");
    strategy_.next_id = std::max(strategy_.next_id, id + 1);
    return id;
  }
  uint64_t next_id() const override { return strategy_.next_id; }

 private:
  ApartStrategy& strategy_;
};

template <class Body>
dsat_status guarded(const dsat_host* host, Body&& body) noexcept {
  try {
    body();
    return DSAT_OK;
  } catch (const Error& error) {
    host->set_error(host, dsat::detail::str(error.what()));
    return error.code();
  } catch (const std::exception& error) {
    host->set_error(host, dsat::detail::str(error.what()));
    return DSAT_INTERNAL;
  }
}

dsat_status deliver(dsat_strategy* strategy, const StrategyEvent& event) noexcept {
  ApartStrategy& apart = self(strategy);
  return guarded(apart.host, [&] {
    AskBench answers(apart);
    for (const Op& op : apart.inner->handle(event, answers)) {
      if (op.kind == Op::Kind::stop_trial) apart.host->stop_trial(apart.host, *op.trial);
      if (op.kind == Op::Kind::finish) {
        apart.host->finish(apart.host, dsat::detail::str(op.reason), op.trial.value_or(DSAT_NO_TRIAL));
      }
    }
  });
}

// Trials that were observed before the study count as known.
Json study_of(ApartStrategy& apart, const dsat_study& raw) {
  Json study = Json::parse(dsat::detail::view(raw.study_json));
  for (const Json& seen : study.value("observations", Json::array())) {
    apart.next_id = std::max(apart.next_id, seen.value("trial", uint64_t{0}) + 1);
  }
  return study;
}

dsat_status start(dsat_strategy* strategy, const dsat_study* study) noexcept {
  StrategyEvent event;
  const dsat_status read = guarded(self(strategy).host, [&] { event.study = study_of(self(strategy), *study); });
  return read == DSAT_OK ? deliver(strategy, event) : read;
}

dsat_status on_result(dsat_strategy* strategy, const dsat_result* raw) noexcept {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::result;
  event.trial = raw->trial;
  event.step = raw->step;
  event.metrics = Json::object();
  for (uint32_t i = 0; i < raw->metric_count; ++i) {
    event.metrics[std::string(dsat::detail::view(raw->metrics[i].name))] = raw->metrics[i].value;
  }
  return deliver(strategy, event);
}

dsat_status on_trial_exited(dsat_strategy* strategy, const dsat_exit* raw) noexcept {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::exited;
  event.trial = raw->trial;
  event.outcome = raw->outcome;
  event.peak_bytes = raw->peak_bytes;
  event.peak_above_bytes = raw->peak_above_bytes;
  event.allocator_retries = raw->allocator_retries;
  event.exit_code = raw->exit_code;
  event.term_signal = raw->term_signal;
  event.attempt = raw->attempt;
  event.reason = dsat::detail::view(raw->reason);
  return deliver(strategy, event);
}

dsat_status restore(dsat_strategy* strategy, const dsat_study* study, dsat_str state) noexcept {
  ApartStrategy& apart = self(strategy);
  return guarded(apart.host, [&] {
    apart.next_id = UINT64_MAX;  // of the study before; the bench checks each request itself
    apart.inner->restore(study_of(apart, *study), std::string(dsat::detail::view(state)));
  });
}

dsat_status save(dsat_strategy* strategy, const dsat_sink* sink) noexcept {
  ApartStrategy& apart = self(strategy);
  return guarded(apart.host, [&] {
    const std::string state = apart.inner->save();
    if (sink->write(sink, state.data(), state.size()) != DSAT_OK) throw Error("its state is too large");
  });
}

dsat_status create(const char*, const dsat_host* host, dsat_str options, dsat_strategy** out) noexcept {
  constexpr uint64_t kSeed = 1;
  constexpr int kNoRestart = 0;
  return guarded(host, [&] {
    auto apart = std::make_unique<ApartStrategy>();
    apart->host = host;
    const auto log = [host](int severity, std::string_view line) {
      host->log(host, severity, {line.data(), line.size()});
    };
    apart->inner = IsolatedStrategy::create(g_plugin, Json::parse(dsat::detail::view(options)), kSeed,
                                            PluginProcesses(), log, kNoRestart);
    const bool saves = apart->inner->can_save();
    apart->interface = {sizeof(dsat_strategy),
                        0,
                        apart.get(),
                        &start,
                        saves ? &restore : nullptr,
                        &on_result,
                        &on_trial_exited,
                        saves ? &save : nullptr,
                        [](dsat_strategy* strategy) noexcept { delete &self(strategy); }};
    *out = &apart.release()->interface;
  });
}

const dsat_descriptor* descriptor(uint32_t) noexcept {
  static dsat_descriptor described;
  static std::string options;
  options = g_plugin.options.dump();
  described = {sizeof(dsat_descriptor),  g_plugin.state_version,   g_plugin.id.c_str(), g_plugin.name.c_str(),
               g_plugin.version.c_str(), g_plugin.summary.c_str(), options.c_str(),     nullptr};
  return &described;
}

}  // namespace

const dsat_factory& apart_factory(const PluginInfo& plugin) {
  g_plugin = plugin;
  static const dsat_factory factory{sizeof(dsat_factory), 1, &descriptor, &create};
  return factory;
}

}  // namespace dsat::host
