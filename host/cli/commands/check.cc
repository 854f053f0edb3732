// dsat-host check: examines the journal of a study and, with --repair, mends it.
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/base/shell.h"
#include "dsat/host/rescue.h"
#include "terminal/exit_status.h"
#include "terminal/format.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host check DIR [--repair] [--json]\n"
    "\n"
    "Examines the journal of a study. --repair goes back to the last whole turn and keeps every trial that can be\n"
    "read; the damaged file stays beside the new one. Status 0: sound, or mended; 4: damaged.\n"
    "\n";

Json as_json(const host::CheckReport& report) {
  return {{"sound", report.sound()},
          {"trials", report.trials},
          {"events", report.events},
          {"findings", report.findings},
          {"mended", report.mended}};
}

void print_report(const host::CheckReport& report, Console& console) {
  for (const std::string& finding : report.findings) console.line(fmt::format("damaged  {}", one_line(finding)));
  for (const std::string& line : report.mended) console.line(fmt::format("mended   {}", one_line(line)));
  console.line(fmt::format("{}: {} trials and {} events",
                           report.sound()          ? "sound"
                           : report.mended.empty() ? "damaged, can be read"
                                                   : "mended",
                           report.trials, report.events));
}

}  // namespace

int check(const Tokens& arguments, Console& console) {
  const auto request = read_request(check_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const std::filesystem::path dir = only_directory(request->operands, "check");
  const auto report = request->values.given("repair") ? host::repair_study(dir, request->values.given("trust-folder"))
                                                      : host::check_study(dir);
  if (!report.ok()) return console.error(report.status().message()), exit_status(report.status());
  if (console.json()) {
    console.print_json(as_json(report.value()));
  } else {
    print_report(report.value(), console);
  }
  if (report->sound() || !report->mended.empty()) return kBestFound;
  console.error(
      fmt::format("{}: its journal is damaged: `dsat-host check {} --repair` goes back to the last whole "
                  "turn",
                  dir.string(), shell_quote(dir.string())));
  return kFailed;
}

}  // namespace dsat::cli
