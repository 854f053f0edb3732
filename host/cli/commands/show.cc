#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/error.h"
#include "dsat/host/record.h"
#include "dsat/host/simulation.h"
#include "terminal/exit_status.h"
#include "terminal/format.h"
#include "terminal/progress.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host show DIR [--json|--csv]\n"
    "\n"
    "Shows a study, running or ended, from its run directory.\n"
    "\n";

std::string text_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return "-";
  return it->is_string() ? it->get<std::string>() : it->dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string trials_table(const host::StudyRecord& record, const std::string& metric) {
  std::vector<std::vector<std::string>> rows{
      {"trial", "kind", "stage", "micro batch", "outcome", metric, "peak", "slots", "note"}};
  for (const host::TrialRecord& trial : record.trials) {
    std::string slots, note = trial.note;
    if (!trial.reason.empty()) note += (note.empty() ? "" : ": ") + trial.reason;
    for (const std::string& slot : trial.slots) slots += (slots.empty() ? "" : ",") + slot;
    if (trial.duplicate_of) note = fmt::format("as trial {}", *trial.duplicate_of);
    // Of a study that has ended nothing runs: what was open then goes on when it is resumed.
    const bool runs = trial.started() && record.status == host::StudyStatus::running;
    const char* open = runs ? "running" : "waiting";
    rows.push_back({std::to_string(trial.id), to_string(trial.kind), or_dash(zero_stage_of(trial.config)),
                    or_dash(micro_batch_of(trial.config)), trial.outcome ? to_string(*trial.outcome) : open,
                    format_metric(metric, trial.metrics), bytes_or_dash(trial.peak_bytes), slots.empty() ? "-" : slots,
                    one_line(note)});
  }
  return format_table(rows, {true, false, true, true, false, true, true});
}

void print_study(const host::StudyRecord& record, Console& console) {
  const std::string metric = text_at(record.study, "metric");
  std::string status = to_string(record.status);
  if (!record.reason.empty()) status += ": " + one_line(record.reason);
  console.line("study   " + record.dir.string());
  console.line("status  " + status);
  console.line("metric  " + metric);
  for (const std::string& line : profile_lines(record.profile)) console.line(line);
  console.text().write("\n" + trials_table(record, metric));
  if (!record.best) return;
  console.line(fmt::format("\nbest: trial {}, {}, stage {}, micro batch {}", record.best->trial,
                           format_metric(metric, record.best->metric), or_dash(zero_stage_of(record.best->config)),
                           or_dash(micro_batch_of(record.best->config))));
  if (!record.best->why.empty()) console.line(one_line(record.best->why));
}

}  // namespace

int show(const Tokens& arguments, Console& console) {
  const auto request = read_request(show_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const auto record = host::read_study(only_directory(request->operands, "show"));
  if (!record.ok()) return console.error(record.status().message()), exit_status(record.status());
  if (request->values.given("csv")) {
    if (console.json()) throw Error("--csv and --json are both given: keep one");
    console.text().write(host::trace_of(record.value()));
  } else if (console.json()) {
    console.print_json(host::to_json(record.value()));
  } else {
    print_study(record.value(), console);
  }
  return kBestFound;
}

}  // namespace dsat::cli
