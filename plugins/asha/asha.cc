// Lists every lineage in the rungs that it has completed, keeps each rung split at 1/divisor, and promotes from the
// highest rung first.
#include "asha/asha.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dsat {

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
       OptionSpec::integer("asha-early-stopping", 0, "rungs whose growth is granted from the start").min(0).max(30),
       OptionSpec::number("search-range-factor", 1.0, "upper end of a search, as a multiple of the expected ceiling")
           .min(0.01)},
      kStateVersion};
}

Asha::Asha(Host host, const Options& options)
    : LineageSearch(host, options.get<double>("search-range-factor")),
      max_rungs_(options.get<int64_t>("max-rungs")),
      min_trials_(options.get<int64_t>("min-binary-search-trials")),
      divisor_(options.get<int64_t>("divisor")),
      early_stopping_(options.get<int64_t>("asha-early-stopping")) {}

int64_t Asha::trials_of_rung(int64_t rung) const {
  constexpr int64_t kPlenty = int64_t{1} << 40;  // more trials than any study has; products do not overflow
  int64_t trials = std::min(min_trials_, kPlenty);
  for (int64_t i = 0; i < early_stopping_ + rung && trials < kPlenty; ++i) {
    trials = divisor_ > kPlenty / trials ? kPlenty : trials * divisor_;
  }
  return trials;
}

bool Asha::completed_its_rung(const Lineage& lineage) const {
  return lineage.open == kNoTrial && (lineage.ended || lineage.trials >= trials_of_rung(lineage.rung));
}

bool Asha::Standing::operator<(const Standing& other) const {
  if (unmeasured != other.unmeasured) return other.unmeasured;
  if (!unmeasured && cost != other.cost) return cost < other.cost;
  return index < other.index;
}

Asha::Standing Asha::standing_of(size_t index, std::optional<double> metric) const {
  const double sign = history().better(1, 0) ? -1 : 1;
  return {!metric, sign * metric.value_or(0), index};
}

// Ranks the lineage by its trials up to the end of that rung.
Asha::Standing Asha::standing_in(size_t index, int64_t rung) const {
  const std::vector<std::optional<double>>& best = lineages()[index].best_after;
  const size_t trials = std::min(best.size(), static_cast<size_t>(trials_of_rung(rung)));
  return standing_of(index, trials == 0 ? std::nullopt : best[trials - 1]);
}

Asha::Listing Asha::listing_of(size_t index) const {
  const Lineage& lineage = lineages()[index];
  const bool completed = completed_its_rung(lineage);
  Listing listing;
  listing.standing = standing_of(index, lineage.best_metric);
  const int64_t rungs = std::min(lineage.rung + (completed ? 1 : 0), max_rungs_);
  for (int64_t rung = 0; rung < rungs; ++rung) listing.rungs.push_back(standing_in(index, rung));
  listing.rung = lineage.rung;
  listing.idle = lineage.idle();
  listing.unfinished = listing.idle && !completed;
  return listing;
}

bool Asha::waits_in(const Standing& standing, int64_t rung) const { return listings_[standing.index].rung == rung; }

// Restores the split of a rung after a change of a lineage.
void Asha::balance(int64_t number) {
  Rung& rung = rungs_[static_cast<size_t>(number)];
  const size_t completed = rung.best.size() + rung.rest.size();
  const size_t wanted = std::min(completed / static_cast<size_t>(divisor_), completed - rung.unmeasured);
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
  for (size_t number = 0; number < listing.rungs.size(); ++number) {
    Rung& rung = rungs_[number];
    const Standing& standing = listing.rungs[number];
    rung.promotable.erase(standing);
    if (rung.best.erase(standing) + rung.rest.erase(standing) > 0 && standing.unmeasured) --rung.unmeasured;
  }
}

void Asha::list(const Listing& listing) {
  if (listing.unfinished) unfinished_.insert(listing.standing.index);
  if (listing.idle) idle_.insert(listing.standing);
  for (size_t number = 0; number < listing.rungs.size(); ++number) {
    rungs_[number].rest.insert(listing.rungs[number]);
    if (listing.rungs[number].unmeasured) ++rungs_[number].unmeasured;
  }
}

void Asha::changed(size_t index) {
  rungs_.resize(static_cast<size_t>(max_rungs_));
  const Listing listing = listing_of(index);
  if (index == listings_.size()) {
    listings_.push_back(listing);
  } else {
    unlist(std::exchange(listings_[index], listing));
  }
  list(listing);
  for (int64_t number = 0; number < max_rungs_; ++number) balance(number);
}

// Lifts one search to its next rung and returns it. An ended search is lifted further at once, since it needs no trial.
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
    rung = max_rungs_ - 1;  // an ended search has now completed the rung above too: start again from the top
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
