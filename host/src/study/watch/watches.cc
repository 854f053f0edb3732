// Each list asks its watches one after the other and collects what they find.
#include "study/watch/watches.h"

#include <fmt/format.h>

#include <utility>

#include "study/watch/missing_metric.h"

namespace dsat::host {
namespace {

using Watch = std::optional<std::string> (*)(Watches&, const Trial&, const WatchView&);

struct Entry {
  Finding::Effect effect;
  Watch watch;
};

constexpr Entry kAfterEnd[] = {
    {Finding::Effect::warning, [](Watches& all, const Trial& trial,
                                  const WatchView& view) { return all.memory.add(trial, view.plan, view.profile); }},
};

constexpr Entry kAfterDelivery[] = {
    {Finding::Effect::warning,
     [](Watches& all, const Trial& trial, const WatchView&) { return all.failures.ceiling(trial); }},
    {Finding::Effect::warning,
     [](Watches& all, const Trial& trial, const WatchView&) { return all.batches.compare(trial); }},
    {Finding::Effect::warning, [](Watches& all, const Trial& trial,
                                  const WatchView& view) { return all.script.compare_times(trial, view.plan.metric); }},
    {Finding::Effect::no_best,
     [](Watches& all, const Trial& trial, const WatchView&) { return all.failures.reason_to_end(trial); }},
    {Finding::Effect::no_best, [](Watches& all, const Trial&, const WatchView&) { return all.batches.proof(); }},
    {Finding::Effect::no_best,
     [](Watches&, const Trial& trial, const WatchView& view) -> std::optional<std::string> {
       if (trial.record.outcome != Outcome::completed) return std::nullopt;
       return why_metric_is_missing(view.trials, view.plan.metric);
     }},
};

template <size_t N>
std::vector<Finding> ask(const Entry (&list)[N], Watches& watches, const Trial& trial, const WatchView& view) {
  std::vector<Finding> findings;
  for (const Entry& entry : list) {
    if (auto text = entry.watch(watches, trial, view)) findings.push_back({entry.effect, std::move(*text)});
  }
  return findings;
}

}  // namespace

std::vector<Finding> Watches::after_run(const TrialEnd& end) {
  std::vector<Finding> findings;
  for (const std::string& warning : end.warnings) {
    if (script.is_shown(warning))
      findings.push_back({Finding::Effect::warning, fmt::format("trial {}: {}", end.id, warning)});
  }
  for (std::string& warning : script.add(end)) findings.push_back({Finding::Effect::warning, std::move(warning)});
  return findings;
}

std::vector<Finding> Watches::after_end(const Trial& trial, const WatchView& view) {
  batches.add(trial);
  return ask(kAfterEnd, *this, trial, view);
}

std::vector<Finding> Watches::after_delivery(const Trial& trial, const WatchView& view) {
  failures.add(trial);
  return ask(kAfterDelivery, *this, trial, view);
}

}  // namespace dsat::host
