// Takes the stages in turn. In each, the user's values come first, at several micro batches, then every other choice at
// one micro batch.
#include "grid/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace dsat {

using search::Ceiling;
using search::Configuration;
using search::Lineage;
using search::TrialHistory;

Descriptor Grid::descriptor() {
  return {
      "dsat.grid",
      "grid",
      "1.0.0",
      "grid search: the stages in turn, from the user's own values outwards",
      {OptionSpec::integer("num-tuning-micro-batch-sizes", 3, "micro batches tried with the user's own values").min(1),
       OptionSpec::integer("early-stopping", 0, "leave a stage after this many trials without a better one; 0: never")
           .min(0)},
      kStateVersion};
}

Grid::Grid(Host host, const Options& options)
    : LineageSearch(host, 1.0),
      micro_batch_sizes_(options.get<int64_t>("num-tuning-micro-batch-sizes")),
      early_stopping_(options.get<int64_t>("early-stopping")) {}

Grid::Stage& Grid::stage_of(const config::StageSpace& space) {
  const auto it = stages_.find(space.stage);
  if (it != stages_.end()) return it->second;
  search::GridOrder order(space, search::usual_choice(space, study().base_config));
  return stages_.emplace(space.stage, Stage{std::move(order)}).first->second;
}

// The stages take turns. A stage with nothing left is drained, and later skipped without a look.
std::optional<Configuration> Grid::draw(uint64_t index, const Usable& usable) {
  const size_t count = space().stages.size();
  for (size_t i = 0; i < count; ++i) {
    const config::StageSpace& candidate = space().stages[(index + i) % count];
    if (left(candidate.stage) || configurations().drained().count(candidate.stage) != 0) continue;
    Stage& stage = stage_of(candidate);
    size_t looks = 0;  // choices that are not taken; a restored search, which counts them anew, finds the same
    for (size_t position = stage.taken; looks < search::Configurations::kMostScanned; ++position) {
      const std::vector<size_t>* choice = stage.order.at(position);
      if (choice == nullptr) break;
      Configuration configuration{candidate.stage, *choice};
      if (usable(configuration)) return configuration;
      const bool taken = is_taken(configuration);
      if (!taken) ++looks;
      if (taken && position == stage.taken) ++stage.taken;
    }
    configurations().drain(candidate.stage);
  }
  return std::nullopt;
}

// A stage that was left early still has untried choices, so the reason names it.
std::string Grid::nothing_left() const {
  std::vector<int> by_early_stopping;
  for (const config::StageSpace& stage : space().stages) {
    if (left(stage.stage)) by_early_stopping.push_back(stage.stage);
  }
  if (by_early_stopping.empty()) return LineageSearch::nothing_left();
  const std::string rest = by_early_stopping.size() < space().stages.size() ? "; nothing is left of the others" : "";
  return fmt::format("early stopping: {} trials without a better one ended stage{} {}{}", early_stopping_,
                     by_early_stopping.size() == 1 ? "" : "s", fmt::join(by_early_stopping, ", "), rest);
}

// Did the last trials of the stage improve nothing?
bool Grid::left(int stage) const {
  if (early_stopping_ == 0) return false;
  std::optional<double> best;
  int64_t since_best = 0;
  for (const Lineage& lineage : lineages()) {
    if (lineage.configuration.stage != stage) continue;
    const bool better = lineage.best_metric && (!best || history().better(*lineage.best_metric, *best));
    since_best = better ? 0 : since_best + lineage.trials;
    if (better) best = lineage.best_metric;
  }
  return since_best >= early_stopping_;
}

const Lineage& Grid::first_of(int stage) const {
  return *std::find_if(lineages().begin(), lineages().end(),
                       [&](const Lineage& lineage) { return lineage.configuration.stage == stage; });
}

bool Grid::leads_stage(const Lineage& lineage) const { return &first_of(lineage.configuration.stage) == &lineage; }

// Without a model of the memory: double the largest micro batch of the stage until a trial runs out of memory. Then
// take the middle between the largest that ran and the smallest that did not.
double Grid::expected_by_trials(const Lineage& lineage, const Ceiling& known) const {
  constexpr double kClose = 1.25;  // a ceiling within this factor is not worth a further failure
  const int64_t held = largest_held(lineage.configuration.stage);
  // These values ran out of memory where others of the stage fitted, so only their own trials count.
  if (known.too_big && *known.too_big <= held) return static_cast<double>(known.fits + *known.too_big) / 2;
  const double ran = static_cast<double>(std::max<int64_t>(1, held));
  // The second and last trial of such values should complete. The first configuration of a stage has more trials.
  if (lineage.too_big && !leads_stage(lineage)) return ran;
  const double failing = known.possible + (known.too_big ? 1 : 0);  // the bound of its own trial is one below it
  if (failing >= 2 * ran) return 2 * ran;
  return failing <= kClose * ran ? ran : (ran + failing) / 2;
}

// The largest rank that is expected to fit. The smallest rank is tried in any case.
int64_t Grid::expected_top(const Lineage& lineage) const {
  const Ceiling known = ceiling(lineage);
  const double expected = history().device_memory_known() ? known.likely : expected_by_trials(lineage, known);
  const int64_t last = last_allowed(lineage, known);
  return std::min(last, std::max<int64_t>(0, micro_batches().rank_at_or_below(expected)));
}

// The next step of an ascending ladder: the ceiling and the powers of two below it, as many as trials are left. A
// failed trial is replaced.
std::optional<Grid::Step> Grid::first_choice_step(const Lineage& lineage) const {
  const int64_t made_up = (lineage.too_big ? 1 : 0) + (lineage.failed ? 1 : 0);
  const int64_t left = micro_batch_sizes_ + made_up - lineage.trials;
  const int64_t top = expected_top(lineage);
  if (left < 1 || top < lineage.low) return std::nullopt;
  int64_t wanted = top;
  int64_t power = 1;
  while (power * 2 < micro_batches().at(top)) power *= 2;
  for (int64_t i = 1; i < left && power >= 1; ++i, power /= 2) {
    const int64_t rank = micro_batches().rank_at_or_below(static_cast<double>(power));
    if (rank < lineage.low) break;
    wanted = rank;
  }
  if (lineage.failed) wanted = below_failure(lineage, top);
  return Step{wanted, lineage.low, fmt::format("grid: micro batch {} with your values", micro_batches().at(wanted))};
}

// Values that the memory model cannot know are tried larger as long as larger is better.
bool Grid::may_hold_more(const Lineage& lineage) const {
  if (!lineage.best_at_top() || lineage.too_big || lineage.failed) return false;
  return history().is_beyond_model(history().setup(history().merged(overrides(lineage.configuration, 0))));
}

// The best choice goes on where the trials of others show that it almost surely holds more. `low` keeps it from
// asking twice.
std::optional<Grid::Step> Grid::larger_step(const Lineage& lineage) const {
  constexpr double kClearly = 1.03;
  const std::optional<TrialHistory::BestTrial> best = history().best();
  const bool leads = best && lineage.best_at_top() && !history().better(best->metric, *lineage.best_metric);
  if (!leads || lineage.open != kNoTrial || !history().device_memory_known()) return std::nullopt;
  const Ceiling known = ceiling(lineage);
  const int64_t rank = std::min(last_allowed(lineage, known), micro_batches().rank_at_or_below(known.certain));
  const int64_t settled = std::max(*lineage.top, lineage.low - 1);
  const auto measured = static_cast<double>(micro_batches().at(settled));
  if (rank <= settled || static_cast<double>(micro_batches().at(rank)) < kClearly * measured) return std::nullopt;
  return Step{rank, rank + 1, "grid: the best values at what almost surely fits"};
}

// Others are asked between two such steps, since they teach more.
std::optional<size_t> Grid::choose() {
  std::optional<size_t> larger;
  for (size_t i = 0; i < lineages().size() && !larger; ++i) {
    if (lineages()[i].ended && larger_step(lineages()[i])) larger = i;
  }
  if (larger && trials_since_best() > 0) return larger;
  const std::optional<size_t> other = idle_or_new();
  return other ? other : larger;
}

std::optional<Grid::Step> Grid::next_step(size_t index) const {
  const Lineage& lineage = lineages()[index];
  if (lineage.ended) return larger_step(lineage);
  if (leads_stage(lineage)) return first_choice_step(lineage);
  if (!may_hold_more(lineage) && (lineage.top || lineage.trials >= 2)) return std::nullopt;
  int64_t rank = expected_top(lineage);
  // If a smaller micro batch than the largest was the best of the stage, this choice is measured there.
  const Lineage& first = first_of(lineage.configuration.stage);
  if (first.best_rank && !first.best_at_top()) rank = std::min(rank, *first.best_rank);
  if (rank < 0) return std::nullopt;
  if (lineage.failed) rank = below_failure(lineage, rank);
  if (lineage.top && rank <= *lineage.top) return std::nullopt;
  return Step{rank, 0, fmt::format("grid: values {}", index)};
}

}  // namespace dsat
