// Walks through the stages in turn.
// In each, the user's values come first, at several micro batches, then every other choice at one.
#include "grid/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsat {

using search::Ceiling;
using search::Configuration;
using search::Lineage;

Descriptor Grid::descriptor() {
  return {
      "dsat.grid",
      "grid",
      "1.0.0",
      "grid search: the stages in turn, from the user's own values outwards",
      {OptionSpec::integer("num-tuning-micro-batch-sizes", 3, "micro batches tried with the user's own values").min(1),
       OptionSpec::integer("early-stopping", 0, "leave a stage after so many trials without a better one; 0 = never")
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

// The stages in turn; one that has nothing left is passed over, from then on without a look.
std::optional<Configuration> Grid::draw(uint64_t index, const Usable& usable) {
  const size_t count = space().stages.size();
  for (size_t i = 0; i < count; ++i) {
    const config::StageSpace& candidate = space().stages[(index + i) % count];
    if (left(candidate.stage) || configurations().drained().count(candidate.stage) != 0) continue;
    Stage& stage = stage_of(candidate);
    size_t looks = 0;  // at what is not taken: a restored search, which takes none for granted, gets the same answer
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

// Have the last trials of the stage brought nothing better?
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

bool Grid::first_of_stage(size_t index) const {
  const int stage = lineages()[index].configuration.stage;
  return std::none_of(lineages().begin(), lineages().begin() + static_cast<std::ptrdiff_t>(index),
                      [&](const Lineage& lineage) { return lineage.configuration.stage == stage; });
}

// The largest rank that is expected to fit; the smallest is tried even where it is not.
int64_t Grid::expected_top(const Lineage& lineage) const {
  const Ceiling known = ceiling(lineage);
  const bool modelled = history().device_memory_known();
  // Without a model: twice what ran in the stage, as far as nothing ran out of memory.
  const double expected = modelled ? known.likely : std::min(2 * std::max(1.0, known.likely), known.possible);
  const int64_t last = last_allowed(lineage, known);
  return std::min(last, std::max<int64_t>(0, micro_batches().rank_at_or_below(expected)));
}

// The next of an ascending ladder: the ceiling and the powers of two below it, as many as there are trials left. A
// trial that ran out of memory is made up for.
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

std::optional<Grid::Step> Grid::next_step(size_t index) const {
  const Lineage& lineage = lineages()[index];
  if (first_of_stage(index)) return first_choice_step(lineage);
  if (lineage.top || lineage.trials >= 2) return std::nullopt;
  int64_t rank = expected_top(lineage);
  // Where a smaller micro batch than the largest was the best of the stage, this one is measured there.
  const auto first = std::find_if(lineages().begin(), lineages().end(), [&](const Lineage& other) {
    return other.configuration.stage == lineage.configuration.stage;
  });
  if (first->best_rank && !first->best_at_top()) rank = std::min(rank, *first->best_rank);
  if (rank < 0) return std::nullopt;
  if (lineage.failed) rank = below_failure(lineage, rank);
  return Step{rank, 0, fmt::format("grid: values {}", index)};
}

}  // namespace dsat
