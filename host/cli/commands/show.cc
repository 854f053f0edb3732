// dsat-host show: reads a run directory and prints it as a table, as JSON, or as a trace that a simulation replays.
// Nothing in the directory is changed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/base/table.h"
#include "dsat/error.h"
#include "dsat/host/facts.h"
#include "dsat/host/format.h"
#include "dsat/host/simulation.h"
#include "terminal/changes.h"
#include "terminal/console.h"
#include "terminal/exit_status.h"
#include "terminal/format.h"
#include "terminal/profile_lines.h"
#include "terminal/progress.h"
#include "terminal/search_view.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host show DIR [--json|--csv|--follow]\n"
    "\n"
    "Shows a study, running or ended, from its run directory.\n"
    "\n";

SearchView::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<SearchView::Clock::duration>(std::chrono::duration<double>(count));
}

// The view of a search that another process runs. The journal's durations are laid before `now`, since its clock is not
// this process's. The time left is the journal's own estimate, handed over as a budget that begins now.
SearchView view_of(const host::StudyFacts& facts, SearchView::Clock::time_point now) {
  SearchView view;
  view.lines = {facts.metric, facts.maximise, facts.progress.max_trials, false};
  view.begin = view.last_end = now;
  view.earlier = facts.progress.started - facts.progress.running;
  if (facts.progress.seconds_left) {
    view.time_budget = std::chrono::milliseconds(static_cast<int64_t>(*facts.progress.seconds_left * 1000));
  }
  view.ceilings.take_profile(facts.record.profile);
  for (size_t i = 0; i < facts.trials.size(); ++i) {
    const host::TrialRecord& trial = facts.record.trials[i];
    view.ceilings.take_trial(trial);
    if (facts.trials[i].place != host::TrialPlace::running) continue;
    view.running[trial.id] = {trial, now - seconds(facts.trials[i].run_seconds.value_or(0))};
  }
  if (facts.baseline) view.own = facts.trials.at(*facts.baseline).value;
  if (facts.record.best) {
    const host::BestRecord& best = *facts.record.best;
    view.best = {best.trial, best.metric,
                 fmt::format("stage {}, micro batch {}", or_dash(zero_stage_of(best.config)),
                             or_dash(micro_batch_of(best.config)))};
  }
  return view;
}

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
  for (const std::string& line : facts.divergences) console.line(fmt::format("diverged: {}", one_line(line)));
  if (facts.check) console.line(host::format_check(*facts.check));
  if (facts.end_to_end && facts.end_to_end->is_script_bound()) {
    console.line(fmt::format("end to end: {}", host::format_end_to_end(*facts.end_to_end)));
  }
  for (const std::string& line : change_lines(facts)) console.line(line);
}

constexpr size_t kShownSteps = 8;

// "1.91 6.56 - nan ...": the first steps, which say most.
std::string first_of(const std::vector<std::optional<double>>& values) {
  std::string text;
  for (size_t i = 0; i < std::min(values.size(), kShownSteps); ++i) {
    text += (i > 0 ? " " : "") + (values[i] ? fmt::format("{:.4g}", *values[i]) : std::string("-"));
  }
  return text + (values.size() > kShownSteps ? " ..." : "");
}

// The losses and gradient norms of the user's own configuration, and of the best or its twin.
void print_curves(const host::StudyFacts& facts, Console& console) {
  const auto print = [&](uint64_t id, const char* whose) {
    const host::Curve& curve = facts.record.trials.at(id).curve;
    if (!curve.losses.empty())
      console.line(fmt::format("losses, {} (trial {}): {}", whose, id, first_of(curve.losses)));
    if (curve.grad_norms.empty()) return;
    console.line(fmt::format("gradient norms, {} (trial {}): {}", whose, id, first_of(curve.grad_norms)));
  };
  if (facts.baseline) print(*facts.baseline, "your own");
  const auto twin = facts.check ? facts.check->twin : std::nullopt;
  const uint64_t best = twin.value_or(facts.record.best->trial);
  if (best != facts.baseline) print(best, twin ? "the best at your own batch" : "the best");
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
  if (!record.best) return;
  print_best(facts, console);
  print_curves(facts, console);
}

// `best` also stands beside `study`, as in the result of a study.
Json document_of(const host::StudyFacts& facts) {
  Json document = host::to_json(facts.record);
  document["best"] = document.at("study").at("best");
  const Json whole = host::to_json_without_trials(facts);
  for (const char* key : {"end_to_end", "check", "divergences"}) document["study"][key] = whole.at("study").at(key);
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

constexpr std::chrono::milliseconds kBetweenReads{500};

host::StudyFacts read_facts(const std::filesystem::path& dir) {
  auto facts = host::read_study_facts(dir);
  if (!facts.ok()) throw Error(facts.status().message());
  return std::move(facts.value());
}

class Follower {
 public:
  Follower(const host::StudyFacts& first, Console& console) : progress_(console, settings_for(first)) {
    progress_.count_earlier(first.record);
    for (const host::TrialRecord& trial : first.record.trials) {
      if (trial.outcome) ended_.insert(trial.id);
    }
    profiled_ = first.record.profile.is_object();
  }

  void take(const host::StudyFacts& facts) {
    if (!profiled_ && facts.record.profile.is_object()) progress_.on_profile(facts.record.profile);
    profiled_ = profiled_ || facts.record.profile.is_object();
    for (size_t i = 0; i < facts.trials.size(); ++i) take(facts.record.trials[i], facts.trials[i].place);
    if (facts.record.best) progress_.on_best(*facts.record.best);
  }

 private:
  static ProgressSettings settings_for(const host::StudyFacts& facts) {
    ProgressSettings settings;
    settings.metric = facts.metric;
    settings.maximise = facts.maximise;
    settings.max_trials = facts.progress.max_trials;
    return settings;
  }

  void take(const host::TrialRecord& trial, host::TrialPlace place) {
    if (trial.outcome && ended_.insert(trial.id).second) progress_.on_trial_ended(trial);
    if (place == host::TrialPlace::running && !trial.outcome && started_[trial.id] != trial.attempt) {
      started_[trial.id] = trial.attempt;
      progress_.on_trial_started(trial);
    }
  }

  LiveProgress progress_;
  std::set<uint64_t> ended_;
  std::map<uint64_t, uint32_t> started_;  // the attempt that was shown
  bool profiled_ = false;
};

// Hands what is new in the journal to the observer that a running study has. The journal does not say that it has
// grown, so it is read twice a second.
void follow(const std::filesystem::path& dir, Console& console) {
  host::StudyFacts facts = read_facts(dir);
  if (facts.record.status != host::StudyStatus::running) return;
  Follower follower(facts, console);
  for (;;) {
    follower.take(facts);
    if (facts.record.status != host::StudyStatus::running) return;
    if (console.text().lost_within(kBetweenReads)) return;  // show --follow | head
    facts = read_facts(dir);
  }
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
