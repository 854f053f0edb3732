// dsat-host show: reads a run directory and prints it as a table, as JSON, or as a trace that a simulation replays.
// Nothing in the directory is changed.
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/base/table.h"
#include "dsat/error.h"
#include "dsat/host/format.h"
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
    std::string note = trial.note;
    if (!trial.reason.empty()) note += (note.empty() ? "" : ": ") + trial.reason;
    const std::string slots = fmt::format("{}", fmt::join(trial.slots, ","));
    if (trial.duplicate_of) note = fmt::format("as trial {}", *trial.duplicate_of);
    // Nothing runs in a study that has ended: what was open then goes on when it is resumed.
    const bool runs = trial.started() && record.status == host::StudyStatus::running;
    const char* open = runs ? "running" : "waiting";
    rows.push_back({fmt::format("{}", trial.id), to_string(trial.kind), or_dash(zero_stage_of(trial.config)),
                    or_dash(micro_batch_of(trial.config)), trial.outcome ? to_string(*trial.outcome) : open,
                    format_metric(metric, trial.metrics), bytes_or_dash(trial.peak_bytes), slots.empty() ? "-" : slots,
                    one_line(note)});
  }
  return format_table(rows, {true, false, true, true, false, true, true});
}

void print_study(const host::StudyRecord& record, Console& console) {
  const std::string metric = text_at(record.study, "metric");
  std::string status = to_string(record.status);
  if (!record.reason.empty()) status += fmt::format(": {}", one_line(record.reason));
  console.line(fmt::format("study   {}", record.dir.string()));
  console.line(fmt::format("status  {}", status));
  console.line(fmt::format("metric  {}", metric));
  for (const std::string& line : profile_lines(record.profile)) console.line(line);
  console.text().write(fmt::format("\n{}", trials_table(record, metric)));
  if (!record.best) return;
  console.line(fmt::format("\nbest: trial {}, {}, stage {}, micro batch {}", record.best->trial,
                           format_metric(metric, record.best->metric), or_dash(zero_stage_of(record.best->config)),
                           or_dash(micro_batch_of(record.best->config))));
  if (!record.best->why.empty()) console.line(one_line(record.best->why));
  if (record.gain) console.line(fmt::format("gain: {}", host::format_gain(*record.gain, record.best->trial)));
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
