// A plugin's strategy in this process: the only class that calls into a plugin. It checks what comes back and collects
// the ops of an event.
// Threading: one thread; the plugin may log from any thread, which then calls `Log`. Ownership: the library of a
// strategy stays mapped for ever, since its threads may outlive the strategy. Errors: dsat::Error, "plugin NAME:
// FUNCTION: message", DSAT_INTERNAL; DSAT_INVALID_ARGUMENT if create refuses its options.
#ifndef DSAT_HOST_PLUGIN_PLUGIN_STRATEGY_H_
#define DSAT_HOST_PLUGIN_PLUGIN_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dsat/host/plugins.h"
#include "plugin/service_table.h"
#include "plugin/strategy.h"

namespace dsat::host {

class PluginStrategy final : public Strategy {
 public:
  using Log = ServiceTable::Log;

  static std::unique_ptr<Strategy> create(const PluginInfo& plugin, const Json& options, uint64_t seed, Log log);
  ~PluginStrategy() override;

  std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) override;
  bool can_save() const override;
  std::string save() override;
  void restore(const Json& study, const std::string& state) override;

 private:
  PluginStrategy(const PluginInfo& plugin, uint64_t seed, Log log);
  template <class Body>
  void call(const char* function, const std::string& what, RequestAnswers* answers, Body&& body);
  dsat_status deliver(const StrategyEvent& event);

  std::string name_;
  uint64_t seed_ = 0;
  ServiceTable& services_;
  dsat_strategy* vtable_ = nullptr;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_STRATEGY_H_
