// Trials on hosts that a command prefix of the user's reaches: --runner-command 'ssh {host}'.
//
// The smallest engine for other machines, and the pattern for further ones (docs/runners.md). What the prefix needs: it
// runs the words that follow it on {host}, passes standard output on, and ends with their exit status. Trials take one
// host each. Threading, ownership: as RemoteEngine.
#ifndef DSAT_HOST_PREFIX_PREFIX_ENGINE_H_
#define DSAT_HOST_PREFIX_PREFIX_ENGINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/remote_engine.h"

namespace dsat::host {

// The words of a prefix, split as a shell splits plain words and quotes. Throws Error: it is empty, or a quote is open.
std::vector<std::string> split_prefix(const std::string& text);

class PrefixEngine : public RemoteEngine {
 public:
  PrefixEngine(Loop& loop, RemoteEngineOptions options, std::vector<std::string> prefix);

  void prepare(TrialContext& context) const override;

 protected:
  Argv client_command(const Launch& launch) const override;
  void write_script(const Launch& launch) const override;
  Argv signal_command(const Launch& launch, const ScriptNote& note, bool at_once) const override;
  std::optional<std::chrono::milliseconds> retry_after(const Running& trial, EngineEnd& end) override;
  void explain(const Running& trial, EngineEnd& end) override;

 private:
  Argv on_host(const Launch& launch, const std::string& command) const;

  std::vector<std::string> prefix_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PREFIX_PREFIX_ENGINE_H_
