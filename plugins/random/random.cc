// Bounds the ranks of a lineage by what is known, and draws a rank by a seeded binomial, with one substream for each
// trial of each lineage.
#include "random/random.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/random.h"

namespace dsat {

using search::Ceiling;
using search::Lineage;

Descriptor RandomSearch::descriptor() {
  return {"dsat.random",
          "random",
          "1.0.0",
          "random configurations with random micro batches",
          {OptionSpec::integer("trials-per-random-config", 5, "most trials of one configuration").min(1),
           OptionSpec::integer("early-stopping", 0, "end after this many trials without a new best; 0: never").min(0)},
          kStateVersion};
}

RandomSearch::RandomSearch(Host host, const Options& options)
    : LineageSearch(host, 1.0),
      trials_per_configuration_(options.get<int64_t>("trials-per-random-config")),
      early_stopping_(options.get<int64_t>("early-stopping")) {}

std::optional<std::string> RandomSearch::enough() const {
  if (early_stopping_ == 0 || trials_since_best() < early_stopping_) return std::nullopt;
  return fmt::format("no better configuration in the last {} trials", trials_since_best());
}

// Has another configuration of the stage completed a larger micro batch?
bool RandomSearch::outrun(size_t index) const {
  const Lineage& self = lineages()[index];
  const std::optional<int64_t> top = top_of_stage(self.configuration.stage);
  return top && (!self.top || *top > *self.top);
}

std::optional<RandomSearch::RankRange> RandomSearch::range_of(const Lineage& lineage) const {
  const Ceiling known = ceiling(lineage);
  const int64_t last = last_allowed(lineage, known);
  const bool modelled = history().device_memory_known();
  int64_t high = std::min(last, micro_batches().rank_at_or_below(upper_end(known)));
  int64_t low = lineage.low;
  if (lineage.trials == 0) {
    if (const auto best = history().best_of(lineage.configuration.stage)) {
      // Above the best of the stage if there is room; at the ceiling if the best reached it.
      low = micro_batches().rank_at_or_below(static_cast<double>(best->micro_batch)) + 1;
      low = std::min({low, last, micro_batches().rank_at_or_below(modelled ? known.likely : known.possible)});
      low = std::max<int64_t>(low, 0);
    }
  }
  if (low > last) return std::nullopt;  // the largest legal micro batch is settled
  if (high < low && (lineage.trials == 0 || lineage.best_at_top())) {
    const double twice = 2.0 * static_cast<double>(micro_batches().at(low));
    high = std::min(last, micro_batches().rank_at_or_below(std::min(twice, known.possible)));
    // The smallest micro batch is tried even if the model doubts that it fits.
    if (lineage.trials == 0) high = std::min(last, std::max(high, low));
  }
  if (high < low) return std::nullopt;
  return RankRange{low, high};
}

std::optional<RandomSearch::Step> RandomSearch::next_step(size_t index) const {
  const Lineage& lineage = lineages()[index];
  if (lineage.trials >= trials_per_configuration_) return std::nullopt;
  if (lineage.trials > 0 && outrun(index)) return std::nullopt;
  const std::optional<RankRange> range = range_of(lineage);
  if (!range) return std::nullopt;
  if (lineage.failed && !lineage.top) {
    return Step{below_failure(lineage, range->high), lineage.low, "below a failure"};
  }
  // One substream for each draw of each lineage. The lower streams drew the configurations.
  constexpr uint64_t kMicroBatches = uint64_t{1} << 32;
  Random random(study().seed, kMicroBatches + index, static_cast<uint64_t>(lineage.trials));
  const int64_t width = range->high - range->low;
  const int64_t rank = range->low + static_cast<int64_t>(random.binomial_half(static_cast<uint64_t>(width)));
  return Step{rank, range->low, fmt::format("random micro batch in {}", this->range(range->low, range->high))};
}

}  // namespace dsat
