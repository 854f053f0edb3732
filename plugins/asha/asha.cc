#include "asha.h"

#include <algorithm>

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
       OptionSpec::integer("asha-early-stopping", 0, "doublings of the trials in every rung").min(0).max(30),
       OptionSpec::number("search-range-factor", 1.0, "upper end of a search, as a multiple of the expected ceiling")
           .min(0.01)}};
}

Asha::Asha(Host host, const Options& options)
    : LineageSearch(host, options.get<double>("search-range-factor")),
      max_rungs_(options.get<int64_t>("max-rungs")),
      min_trials_(options.get<int64_t>("min-binary-search-trials")),
      divisor_(options.get<int64_t>("divisor")),
      early_stopping_(options.get<int64_t>("asha-early-stopping")) {}

int64_t Asha::trials_of_rung(int64_t rung) const {
  constexpr int64_t kPlenty = int64_t{1} << 40;  // more than any study has, and no overflow
  const int64_t doublings = std::min<int64_t>(early_stopping_ + rung, 40);
  return min_trials_ > (kPlenty >> doublings) ? kPlenty : min_trials_ << doublings;
}

bool Asha::completed_its_rung(const Lineage& lineage) const {
  return lineage.open == kNoTrial && (lineage.ended || lineage.trials >= trials_of_rung(lineage.rung));
}

// The better metric first; a search without one comes last, and of equals the older.
bool Asha::ranks_before(size_t a, size_t b) const {
  const auto& left = lineages()[a].best_metric;
  const auto& right = lineages()[b].best_metric;
  if (left && right && *left != *right) return knowledge().better(*left, *right);
  if (left.has_value() != right.has_value()) return left.has_value();
  return a < b;
}

// Those of the best 1/divisor that have completed `rung`; some may be further up by now.
std::vector<size_t> Asha::best_of_rung(int64_t rung) const {
  std::vector<size_t> completed;
  for (size_t i = 0; i < lineages().size(); ++i) {
    const Lineage& lineage = lineages()[i];
    if (lineage.rung > rung || (lineage.rung == rung && completed_its_rung(lineage))) completed.push_back(i);
  }
  std::sort(completed.begin(), completed.end(), [this](size_t a, size_t b) { return ranks_before(a, b); });
  completed.resize(completed.size() / static_cast<size_t>(divisor_));
  return completed;
}

// Lifts one search to its next rung and returns it; an ended one is lifted without a trial, as far as it goes.
std::optional<size_t> Asha::promote() {
  for (int64_t rung = max_rungs_ - 2; rung >= 0; --rung) {
    std::optional<size_t> longest;
    for (const size_t i : best_of_rung(rung)) {
      const Lineage& candidate = lineages()[i];
      if (candidate.rung != rung) continue;
      if (!longest || candidate.trials > lineages()[*longest].trials) longest = i;
    }
    if (!longest) continue;
    ++lineage(*longest).rung;
    if (!lineages()[*longest].ended) return longest;
    rung = max_rungs_ - 1;  // an ended search counts in the rung above: look again from the top
  }
  return std::nullopt;
}

std::optional<size_t> Asha::best_waiting() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < lineages().size(); ++i) {
    if (lineages()[i].idle() && (!best || ranks_before(i, *best))) best = i;
  }
  return best;
}

std::optional<size_t> Asha::choose() {
  for (size_t i = 0; i < lineages().size(); ++i) {
    if (lineages()[i].idle() && !completed_its_rung(lineages()[i])) return i;
  }
  if (const std::optional<size_t> promoted = promote()) return promoted;
  if (const std::optional<size_t> fresh = open_lineage()) return fresh;
  return best_waiting();
}

}  // namespace dsat
