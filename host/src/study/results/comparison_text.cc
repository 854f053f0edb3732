// Looks for the trials of the user's own configuration, and for the trials of the phases after the search.
#include "study/results/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/host/format.h"
#include "finals/end_to_end.h"
#include "finals/gain.h"
#include "finals/ignored_batch.h"
#include "finals/verification.h"

namespace dsat::host {
namespace {

// "ran out of memory: CUDA out of memory"
std::string how_it_ended(const TrialRecord& record) {
  std::string text = to_string(*record.outcome);
  std::replace(text.begin(), text.end(), '_', ' ');
  return record.reason.empty() ? text : fmt::format("{}: {}", text, record.reason);
}

}  // namespace

std::string gain_text(const Plan& plan, const std::vector<Trial>& trials, const BaselineConfiguration& own,
                      const std::optional<BestRecord>& best) {
  if (!plan.baseline) return "";
  if (!own.why_not.empty()) return fmt::format("your own configuration: not measured, {}\n", own.why_not);
  if (best) {
    if (const auto gain = gain_over_own(trials, plan.metric, plan.maximise, own.identity, best->trial)) {
      const std::string made_of = format_gain_sides(*gain, plan.metric);
      return fmt::format("gain: {}{}\n{}{}", format_gain(*gain, best->trial),
                         format_devices(trials[gain->baseline].record.config, trials[best->trial].record.config),
                         made_of, made_of.empty() ? "" : "\n");
    }
    if (const auto why_not = proof_of_ignored_batch(trials)) return fmt::format("gain: none is stated, {}\n", *why_not);
  }
  const auto ended = [&](const Trial& trial) {
    return trial.identity == own.identity && trial.record.outcome && trial.record.started();
  };
  const auto trial = std::find_if(trials.begin(), trials.end(), ended);
  if (trial == trials.end() || trial->record.outcome == Outcome::completed) return "";
  return fmt::format("your own configuration: trial {}, {}\n", trial->id(), how_it_ended(trial->record));
}

std::string end_to_end_text(const Plan& plan, const std::vector<Trial>& trials, const BaselineConfiguration& own,
                            const std::optional<BestRecord>& best) {
  if (!best) return "";
  const auto found = end_to_end_of_best(trials, plan.baseline ? own.identity : "", best->trial);
  return found && found->is_script_bound() ? fmt::format("end to end: {}\n", format_end_to_end(*found)) : "";
}

std::string repeats_text(const std::vector<Trial>& trials) {
  std::string text;
  for (const Trial& trial : trials) {
    if (!fails_again(trial) || fails_verification(trial)) continue;
    const auto first = std::find_if(trials.begin(), trials.end(),
                                    [&](const Trial& other) { return other.identity == trial.identity; });
    text +=
        fmt::format("measured again: trial {} as trial {}, {}\n", first->id(), trial.id(), how_it_ended(trial.record));
  }
  return text;
}

std::string verification_text(const Plan& plan, const std::vector<Trial>& trials, const std::optional<BestRecord>& best,
                              bool has_ended) {
  if (plan.verify_steps < 1) return "";
  std::string text;
  bool best_lasted = false;
  for (const Trial& trial : trials) {
    if (trial.phase != Phase::verification || !trial.record.outcome) continue;
    const bool lasted = trial.record.outcome == Outcome::completed;
    best_lasted = best_lasted || (lasted && best && trial.identity == trials[best->trial].identity);
    const auto first = std::find_if(trials.begin(), trials.end(),
                                    [&](const Trial& other) { return other.identity == trial.identity; });
    text += lasted ? fmt::format("verified: trial {} trained {} further steps\n", first->id(), plan.verify_steps)
                   : fmt::format("not verified: trial {} did not train {} further steps ({})\n", first->id(),
                                 plan.verify_steps, how_it_ended(trial.record));
  }
  if (has_ended && !best_lasted && (best || !text.empty())) text += "the best itself was not verified\n";
  return text;
}

}  // namespace dsat::host
