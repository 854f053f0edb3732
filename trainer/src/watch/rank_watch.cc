// Keeps the time of each rank's last beat and of the last motion of any rank, and compares them with limits.
// If this process itself was stopped, all clocks begin anew: the others' silence was its own.
#include "watch/rank_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace dsat::trainer {

constexpr std::chrono::seconds RankWatch::kSilence;
constexpr std::chrono::seconds RankWatch::kStillness;
constexpr std::chrono::seconds RankWatch::kOwnStillness;

void RankWatch::started(int rank, Clock::time_point now) {
  ranks_[rank] = {now, std::nullopt};
  moved_ = looked_ = now;
}

void RankWatch::receive(int rank, const Beat& beat, Clock::time_point now) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return;
  Rank& r = found->second;
  if (!r.beat || has_moved(*r.beat, beat)) moved_ = now;
  r = {now, beat};
}

void RankWatch::ended(int rank) {
  ranks_.erase(rank);
  moved_ = looked_;
}

std::string RankWatch::silence_of(int rank) {
  return fmt::format(
      "rank {} has given no sign of life for {} s: it has been stopped or killed, or its machine is stuck", rank,
      kSilence.count());
}

std::chrono::seconds RankWatch::patience() const {
  for (const auto& [rank, r] : ranks_) {
    if (!r.beat || r.beat->waiting_in.empty()) return kOwnStillness;
  }
  return kStillness;
}

std::optional<std::string> RankWatch::verdict(Clock::time_point now) {
  if (now - looked_ > 4 * kBeatInterval) {
    moved_ = now;
    for (auto& [rank, r] : ranks_) r.last_beat_at = now;
  }
  looked_ = now;
  for (const auto& [rank, r] : ranks_) {
    if (now - r.last_beat_at <= kSilence) continue;
    return silence_of(rank);
  }
  if (ranks_.empty() || now - moved_ <= patience()) return std::nullopt;
  std::vector<std::string> places;
  for (const auto& [rank, r] : ranks_) {
    const bool waits = r.beat && !r.beat->waiting_in.empty();
    places.push_back(
        fmt::format("rank {} is in {}", rank, waits ? r.beat->waiting_in : "nothing that the engine knows of"));
  }
  return fmt::format("no rank has done anything for {} s: {}", patience().count(), fmt::join(places, ", "));
}

std::vector<int> RankWatch::computing() const {
  std::vector<int> computing, all;
  for (const auto& [number, rank] : ranks_) {
    all.push_back(number);
    if (!rank.beat || rank.beat->waiting_in.empty()) computing.push_back(number);
  }
  return computing.empty() ? all : computing;
}

}  // namespace dsat::trainer
