// dsat-host show: reads a run directory and prints it as a table, as JSON, or as a trace that a simulation replays.
// Nothing in the directory is changed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "commands/commands.h"
#include "commands/follow.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/base/table.h"
#include "dsat/error.h"
#include "dsat/host/facts.h"
#include "dsat/host/format.h"
#include "dsat/host/simulation.h"
#include "terminal/changes.h"
#include "terminal/exit_status.h"
#include "terminal/format.h"
#include "terminal/profile_lines.h"
#include "terminal/recorded_view.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host show DIR [--json|--csv|--follow]\n"
    "\n"
    "Shows a study, running or ended, from its run directory.\n"
    "\n";

std::string trials_table(const host::StudyRecord& record, const std::string& metric) {
  std::vector<std::vector<std::string>> rows{
      {"trial", "kind", "stage", "micro batch", "outcome", metric, "peak", "slots", "note"}};
  for (const host::TrialRecord& trial : record.trials) {
    std::string note = trial.note;
    if (!trial.reason.empty()) note += (note.empty() ? "" : ": ") + trial.reason;
    const std::string slots = fmt::format("{}", fmt::join(trial.slots, ","));
    if (trial.duplicate_of) note = fmt::format("as trial {}", *trial.duplicate_of);
    // In a study that has ended no trial runs; an open trial waits for a resume.
    const bool runs = trial.started() && record.status == host::StudyStatus::running;
    const char* open = runs ? "running" : "waiting";
    rows.push_back({fmt::format("{}", trial.id), to_string(trial.kind), or_dash(zero_stage_of(trial.config)),
                    or_dash(micro_batch_of(trial.config)), trial.outcome ? to_string(*trial.outcome) : open,
                    format_metric(metric, trial.metrics), bytes_or_dash(trial.peak_bytes), slots.empty() ? "-" : slots,
                    one_line(note)});
  }
  return format_table(rows, {true, false, true, true, false, true, true});
}

// For a running study: its progress, the time left, and the running trials.
void print_progress(const host::StudyFacts& facts, Console& console) {
  constexpr TerminalSize kSize{100, 100};
  const bool drawing = console.text().terminal() && style_of(console.text()).drawing;
  const auto now = SearchView::Clock::now();
  for (const StyledLine& line : picture(view_of(facts, now), now, kSize, drawing)) console.line(plain_text(line));
}

void print_best(const host::StudyFacts& facts, Console& console) {
  const host::BestRecord& best = *facts.record.best;
  console.line(fmt::format("\nbest: trial {}, {}, stage {}, micro batch {}", best.trial,
                           format_metric(facts.metric, best.metric), or_dash(zero_stage_of(best.config)),
                           or_dash(micro_batch_of(best.config))));
  if (!best.why.empty()) console.line(one_line(best.why));
  const auto& gain = facts.record.gain;
  if (gain) console.line(fmt::format("gain: {}{}", host::format_gain(*gain, best.trial), devices_note(facts)));
  const std::string made_of = gain ? host::format_gain_sides(*gain, facts.metric) : "";
  if (!made_of.empty()) console.line(made_of);
  if (!facts.why_no_gain.empty()) console.line(fmt::format("gain: none is stated, {}", facts.why_no_gain));
  if (facts.end_to_end && facts.end_to_end->is_script_bound()) {
    console.line(fmt::format("end to end: {}", host::format_end_to_end(*facts.end_to_end)));
  }
  for (const std::string& line : change_lines(facts)) console.line(line);
}

void print_study(const host::StudyFacts& facts, Console& console) {
  const host::StudyRecord& record = facts.record;
  std::string status = to_string(record.status);
  if (!record.reason.empty()) status += fmt::format(": {}", one_line(record.reason));
  console.line(fmt::format("study   {}", record.dir.string()));
  console.line(fmt::format("status  {}", status));
  console.line(fmt::format("metric  {}", facts.metric));
  if (record.status == host::StudyStatus::running) print_progress(facts, console);
  for (const std::string& line : profile_lines(record.profile)) console.line(line);
  console.print(fmt::format("\n{}", trials_table(record, facts.metric)));
  if (record.best) print_best(facts, console);
}

// `best` also stands beside `study`, as in the result of a study.
Json document_of(const host::StudyFacts& facts) {
  Json document = host::to_json(facts.record);
  document["best"] = document.at("study").at("best");
  const Json whole = host::to_json_without_trials(facts);
  for (const char* key : {"end_to_end", "why_no_gain"}) document["study"][key] = whole.at("study").at(key);
  document["progress"] = whole.at("progress");
  return document;
}

// Trials of the verification run longer than other trials of their configuration, and may fail at a step that the
// others do not reach.
host::StudyRecord without_verification(const host::StudyFacts& facts) {
  host::StudyRecord record = facts.record;
  record.trials.clear();
  std::copy_if(facts.record.trials.begin(), facts.record.trials.end(), std::back_inserter(record.trials),
               [&](const host::TrialRecord& trial) { return facts.trials[trial.id].phase != "verification"; });
  return record;
}

}  // namespace

int show(const Tokens& arguments, Console& console) {
  const auto request = read_request(show_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const std::filesystem::path dir = only_directory(request->operands, "show");
  const bool csv = request->values.given("csv"), following = request->values.given("follow");
  if (csv + console.json() + following > 1) throw Error("--csv, --json and --follow: give one of them");
  if (following) follow(dir, console);
  const auto facts = host::read_study_facts(dir);
  if (!facts.ok()) return console.error(facts.status().message()), exit_status(facts.status());
  if (csv) {
    console.data(host::trace_of(without_verification(facts.value())));
  } else if (console.json()) {
    console.print_json(document_of(facts.value()));
  } else {
    print_study(facts.value(), console);
  }
  return kBestFound;
}

}  // namespace dsat::cli
