// dsat-host serve: shows studies in a browser until it is stopped. Signals are blocked before the server starts
// threads, so that only sigwait() receives them.
#include <fmt/format.h>
#include <pthread.h>

#include <csignal>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/error.h"
#include "dsat/host/record.h"
#include "serve/server.h"
#include "terminal/exit_status.h"
#include "terminal/signals.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host serve DIR... [--port N]\n"
    "\n"
    "Shows studies, running or ended, in a browser of this machine until Ctrl-C. Nothing in DIR is changed.\n"
    "\n";

}  // namespace

int serve(const Tokens& arguments, Console& console) {
  const auto request = read_request(serve_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  if (request->operands.empty()) {
    throw Error("serve needs the run directory of a study, or several: type dsat-host serve DIR...");
  }
  std::vector<std::filesystem::path> dirs;
  for (const std::string& operand : request->operands) {
    dirs.push_back(std::filesystem::absolute(only_directory({operand}, "serve")));
    const auto record = host::read_study(dirs.back());
    if (!record.ok()) return console.error(record.status().message()), exit_status(record.status());
  }

  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) add_unless_ignored(signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const int port = request->values.small_integer("port").value_or(0);
  const Server server(dirs, port, [&console](const std::string& line) { console.error(one_line(line)); });
  console.line(fmt::format("serving {} at {}", dirs.size() == 1 ? "1 study" : fmt::format("{} studies", dirs.size()),
                           server.url()));
  console.line("If your browser runs on another machine, forward the port (ssh -L). Ctrl-C ends the server.");
  int signal = 0;
  sigwait(&signals, &signal);
  return kBestFound;
}

}  // namespace dsat::cli
