// Runs trials on hosts that the user's command prefix reaches: --runner-command 'ssh {host}'.
//
// This is the smallest engine for other machines, and an example for new ones (docs/runners.md). The prefix must run
// the words after it on {host}, pass on standard output, and end with their exit status. Each trial takes one host.
// Threading, ownership: as RemoteEngine.
#ifndef DSAT_HOST_PREFIX_PREFIX_ENGINE_H_
#define DSAT_HOST_PREFIX_PREFIX_ENGINE_H_

#include <optional>
#include <string>
#include <vector>

#include "runner/remote_engine.h"

namespace dsat::host {

// Splits a prefix as a shell splits plain words and quotes. Throws Error: it is empty, or a quote is open.
std::vector<std::string> split_prefix(const std::string& text);

class PrefixEngine : public RemoteEngine {
 public:
  PrefixEngine(Loop& loop, RemoteEngineOptions options, std::vector<std::string> prefix);

  void prepare(TrialContext& context) const override;

 protected:
  Argv client_command(const Launch& launch) const override;
  void write_script(const Launch& launch) const override;
  Argv signal_command(const Launch& launch, const ScriptNote& note, bool at_once) const override;
  std::optional<std::chrono::milliseconds> retry_after(const RemoteTrial& trial, EngineEnd& end) override;
  void explain(const RemoteTrial& trial, EngineEnd& end) override;

 private:
  Argv on_host(const Launch& launch, const std::string& command) const;

  std::vector<std::string> prefix_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PREFIX_PREFIX_ENGINE_H_
