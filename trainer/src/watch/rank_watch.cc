#include "watch/rank_watch.h"

namespace dsat::trainer {

constexpr std::chrono::seconds RankWatch::kSilence;
constexpr std::chrono::seconds RankWatch::kStillness;
constexpr std::chrono::seconds RankWatch::kOwnStillness;

void RankWatch::started(int rank, Clock::time_point now) {
  ranks_[rank] = {now, std::nullopt};
  moved_ = looked_ = now;
}

void RankWatch::heard(int rank, const Beat& beat, Clock::time_point now) {
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

std::chrono::seconds RankWatch::patience() const {
  for (const auto& [rank, r] : ranks_) {
    if (!r.beat || r.beat->waiting_in.empty()) return kOwnStillness;
  }
  return kStillness;
}

std::optional<std::string> RankWatch::verdict(Clock::time_point now) {
  if (now - looked_ > 4 * kBeatInterval) {
    moved_ = now;
    for (auto& [rank, r] : ranks_) r.heard = now;
  }
  looked_ = now;
  for (const auto& [rank, r] : ranks_) {
    if (now - r.heard <= kSilence) continue;
    return "rank " + std::to_string(rank) + " has given no sign of life for " + std::to_string(kSilence.count()) +
           " s: it has been stopped or killed, or its machine is stuck";
  }
  if (ranks_.empty() || now - moved_ <= patience()) return std::nullopt;
  std::string text = "no rank has done anything for " + std::to_string(patience().count()) + " s:";
  for (const auto& [rank, r] : ranks_) {
    const bool waits = r.beat && !r.beat->waiting_in.empty();
    text += (text.back() == ':' ? " rank " : ", rank ") + std::to_string(rank) + " is in " +
            (waits ? r.beat->waiting_in : "nothing that the engine knows of");
  }
  return text;
}

}  // namespace dsat::trainer
