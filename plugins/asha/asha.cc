// Keeps every lineage listed in the rungs that it has completed, each rung split at 1/divisor, and promotes from the
// highest rung first.
#include "asha/asha.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dsat {

using search::Configuration;
using search::Lineage;

Descriptor Asha::descriptor() {
  return {
      "dsat.asha",
      "asha",
      "1.0.0",
      "successive halving over random configurations, each with a binary search for its micro batch",
      {OptionSpec::integer("max-rungs", 5, "rungs of the ladder").min(1).max(30),
       OptionSpec::integer("min-binary-search-trials", 3, "trials of a configuration in the lowest rung").min(1),
       OptionSpec::integer("divisor", 2, "of each rung the best 1/divisor are promoted").min(2),
       OptionSpec::integer("asha-early-stopping", 0, "doublings of the trials in every rung").min(0).max(30),
       OptionSpec::choice("asha-draw", {"random", "guided"}, "random",
                          "whether a new configuration is drawn at random or from guided's models"),
       OptionSpec::number("search-range-factor", 1.0, "upper end of a search, as a multiple of the expected ceiling")
           .min(0.01)}};
}

Asha::Asha(Host host, const Options& options)
    : LineageSearch(host, options.get<double>("search-range-factor")),
      draws_guided_(options.get<std::string>("asha-draw") == "guided"),
      max_rungs_(options.get<int64_t>("max-rungs")),
      min_trials_(options.get<int64_t>("min-binary-search-trials")),
      divisor_(options.get<int64_t>("divisor")),
      early_stopping_(options.get<int64_t>("asha-early-stopping")) {}

zero_model::SearcherTrials Asha::trials_for_models() const {
  zero_model::SearcherTrials trials;
  const std::vector<Record>& all = records();
  for (size_t i = all.size() - std::min(zero_model::kLearnedTrials, all.size()); i < all.size(); ++i) {
    const Record& record = all[i];
    trials.past.push_back({record.trial, lineages()[record.lineage].configuration, micro_batches().at(record.rank),
                           record.outcome, record.metric, record.peak_bytes});
  }
  for (const size_t index : running()) {
    const Lineage& lineage = lineages()[index];
    trials.pending.push_back({lineage.configuration, micro_batches().at(lineage.open_rank)});
  }
  return trials;
}

// A share stays random, as in BOHB (Falkner et al., arXiv:1807.01774): so that no prediction shuts out what it is wrong
// about.
std::optional<Configuration> Asha::draw(uint64_t index, const Usable& usable) {
  constexpr uint64_t kRandomShare = 4;
  if (draws_guided_ && index % kRandomShare != kRandomShare - 1) {
    if (auto drawn = zero_model::draw_configuration(study(), trials_for_models(), index, usable)) return drawn;
  }
  return LineageSearch::draw(index, usable);
}

int64_t Asha::trials_of_rung(int64_t rung) const {
  constexpr int64_t kPlenty = int64_t{1} << 40;  // more than any study has, and no overflow
  const int64_t doublings = std::min<int64_t>(early_stopping_ + rung, 40);
  return min_trials_ > (kPlenty >> doublings) ? kPlenty : min_trials_ << doublings;
}

bool Asha::completed_its_rung(const Lineage& lineage) const {
  return lineage.open == kNoTrial && (lineage.ended || lineage.trials >= trials_of_rung(lineage.rung));
}

bool Asha::Standing::operator<(const Standing& other) const {
  if (unmeasured != other.unmeasured) return other.unmeasured;
  if (!unmeasured && cost != other.cost) return cost < other.cost;
  return index < other.index;
}

Asha::Listing Asha::listing_of(size_t index) const {
  const Lineage& lineage = lineages()[index];
  Listing listing;
  listing.standing = {!lineage.best_metric, lineage.best_metric.value_or(0), index};
  if (history().better(1, 0)) listing.standing.cost = -listing.standing.cost;
  const bool completed = completed_its_rung(lineage);
  listing.rung = lineage.rung;
  listing.rungs = lineage.rung + (completed ? 1 : 0);
  listing.idle = lineage.idle();
  listing.unfinished = listing.idle && !completed;
  return listing;
}

bool Asha::waits_in(const Standing& standing, int64_t rung) const { return listings_[standing.index].rung == rung; }

// Restores the split of a rung after a lineage has changed.
void Asha::balance(int64_t number) {
  Rung& rung = rungs_[static_cast<size_t>(number)];
  const size_t wanted = (rung.best.size() + rung.rest.size()) / static_cast<size_t>(divisor_);
  const auto demote = [&] {
    const auto last = std::prev(rung.best.end());
    rung.promotable.erase(*last);
    rung.rest.insert(rung.best.extract(last));
  };
  const auto lift = [&] {
    const Standing first = *rung.rest.begin();
    rung.best.insert(rung.rest.extract(rung.rest.begin()));
    if (waits_in(first, number)) rung.promotable.insert(first);
  };
  while (rung.best.size() > wanted) demote();
  while (rung.best.size() < wanted) lift();
  while (!rung.best.empty() && !rung.rest.empty() && *rung.rest.begin() < *std::prev(rung.best.end())) {
    demote();
    lift();
  }
}

void Asha::unlist(const Listing& listing) {
  unfinished_.erase(listing.standing.index);
  idle_.erase(listing.standing);
  for (int64_t number = 0; number < std::min(listing.rungs, max_rungs_); ++number) {
    Rung& rung = rungs_[static_cast<size_t>(number)];
    rung.promotable.erase(listing.standing);
    if (rung.best.erase(listing.standing) == 0) rung.rest.erase(listing.standing);
  }
}

void Asha::list(const Listing& listing) {
  if (listing.unfinished) unfinished_.insert(listing.standing.index);
  if (listing.idle) idle_.insert(listing.standing);
  for (int64_t number = 0; number < std::min(listing.rungs, max_rungs_); ++number) {
    rungs_[static_cast<size_t>(number)].rest.insert(listing.standing);
  }
}

void Asha::changed(size_t index) {
  rungs_.resize(static_cast<size_t>(max_rungs_));
  const Listing listing = listing_of(index);
  if (index == listings_.size()) listings_.push_back(listing);
  const Listing before = std::exchange(listings_[index], listing);
  unlist(before);
  list(listing);
  for (int64_t number = 0; number < std::min(std::max(before.rungs, listing.rungs), max_rungs_); ++number)
    balance(number);
}

// Lifts one search to its next rung and returns it; an ended one is lifted without a trial, as far as it goes.
std::optional<size_t> Asha::promote() {
  for (int64_t rung = max_rungs_ - 2; rung >= 0; --rung) {
    std::optional<size_t> longest;
    for (const Standing& standing : rungs_[static_cast<size_t>(rung)].promotable) {
      if (!longest || lineages()[standing.index].trials > lineages()[*longest].trials) longest = standing.index;
    }
    if (!longest) continue;
    ++lineage(*longest).rung;
    changed(*longest);
    if (!lineages()[*longest].ended) return longest;
    rung = max_rungs_ - 1;  // an ended search counts in the rung above: look again from the top
  }
  return std::nullopt;
}

std::optional<size_t> Asha::choose() {
  rungs_.resize(static_cast<size_t>(max_rungs_));
  if (!unfinished_.empty()) return *unfinished_.begin();
  if (const std::optional<size_t> promoted = promote()) return promoted;
  if (const std::optional<size_t> fresh = open_lineage()) return fresh;
  return idle_.empty() ? std::nullopt : std::optional<size_t>(idle_.begin()->index);
}

}  // namespace dsat
