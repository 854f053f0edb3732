// Puts the user's prefix before one word with the whole command. ssh joins its words for a remote shell and env does
// not, but both accept a single word that a shell reads.
#include "prefix/prefix_engine.h"

#include <fmt/format.h>

#include "dsat/base/shell.h"
#include "dsat/base/utf8.h"
#include "dsat/error.h"

namespace dsat::host {

namespace {

constexpr int kTries = 3;  // clients that end before their script starts

std::string host_of(const Launch& launch) {
  const std::string& host = launch.slots.front().host;
  return host.empty() ? "localhost" : host;
}

}  // namespace

std::vector<std::string> split_prefix(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (const char c : text) {
    const bool blank = quote == '\0' && (c == ' ' || c == '\t');
    if (blank) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote != '\0' ? c == quote : c == '\'' || c == '"') {
      quote = quote != '\0' ? '\0' : c;
    } else {
      words.back() += c;
    }
  }
  if (quote != '\0') throw Error(fmt::format("--runner-command {}: the quote {} has no end", text, quote));
  if (words.empty()) throw Error("--runner-command is empty: give a command such as 'ssh {host}'");
  return words;
}

PrefixEngine::PrefixEngine(Loop& loop, RemoteEngineOptions options, std::vector<std::string> prefix)
    : RemoteEngine(loop, std::move(options)), prefix_(std::move(prefix)) {}

Argv PrefixEngine::on_host(const Launch& launch, const std::string& command) const {
  Argv argv{"/usr/bin/env"};  // env looks for the prefix's program in PATH
  for (std::string word : prefix_) {
    for (size_t at = word.find("{host}"); at != std::string::npos; at = word.find("{host}", at)) {
      const std::string host = host_of(launch);
      word.replace(at, 6, host);
      at += host.size();
    }
    argv.push_back(std::move(word));
  }
  argv.push_back(command);
  return argv;
}

// The trial is alone on its host, where its slots are local.
void PrefixEngine::prepare(TrialContext& context) const {
  context.hostfile.clear();
  for (Slot& slot : context.slots) slot.host.clear();
}

Argv PrefixEngine::client_command(const Launch& launch) const {
  return on_host(launch, "exec sh " + shell_quote((launch.folder / kScriptFile).string()));
}

void PrefixEngine::write_script(const Launch& launch) const {
  Launch with_devices = launch;
  set_variable(with_devices.added, "CUDA_VISIBLE_DEVICES", id_list(launch.slots));
  TrialScript script{with_devices};
  script.slots_per_node = static_cast<int>(launch.slots.size());
  script.launcher = options_.launcher;
  write_trial_script(script);
}

// The script passes on TERM. If it is killed, dsat-launch below it ends the whole tree. A note may be old, and its
// process id may belong to another process now, so the command line is checked.
Argv PrefixEngine::signal_command(const Launch& launch, const ScriptNote& note, bool at_once) const {
  return on_host(launch,
                 fmt::format("grep -qF {0} /proc/{1}/cmdline && kill -{2} {1}",
                             shell_quote((launch.folder / kScriptFile).string()), note.pid, at_once ? "KILL" : "TERM"));
}

std::optional<std::chrono::milliseconds> PrefixEngine::retry_after(const RemoteTrial& trial, EngineEnd& end) {
  if (trial.tries < kTries) return std::chrono::seconds(trial.tries);
  const auto lines = printable_lines(client_words(trial.launch));
  end.verdict = Verdict{Outcome::failed,
                        fmt::format("host {} could not start it: {}", host_of(trial.launch),
                                    lines.empty() ? "--runner-command printed nothing" : lines.back()),
                        true};
  return std::nullopt;
}

void PrefixEngine::explain(const RemoteTrial& trial, EngineEnd& end) {
  const auto lines = printable_lines(client_words(trial.launch));
  if (lines.empty()) return;
  end.verdict = Verdict{Outcome::failed, fmt::format("host {}: {}", host_of(trial.launch), lines.back()), true};
}

}  // namespace dsat::host
