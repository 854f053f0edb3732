// Deals the stages like cards and draws values at random. If random draws find nothing usable, a stage is searched in
// order, up to a limit, before it counts as drained.
#include "search/configurations.h"

#include <algorithm>
#include <utility>

#include "dsat/random.h"

namespace dsat::search {
namespace {

// Random draws before a stage is searched in order.
constexpr uint64_t kDraws = 64;

// Streams of the seed, one for each kind of draw.
constexpr uint64_t kDealing = 1;
constexpr uint64_t kChoosing = 2;

// The number of points of a stage, up to the limit of a search in order.
uint64_t points(const config::StageSpace& stage) {
  uint64_t count = 1;
  for (const config::Axis& axis : stage.axes)
    count = std::min<uint64_t>(count * axis.values.size(), Configurations::kMostScanned);
  return count;
}

// Goes to the next point, the last axis first.
void next_point(const config::StageSpace& stage, std::vector<size_t>& choice) {
  for (size_t i = choice.size(); i-- > 0;) {
    if (++choice[i] < stage.axes[i].values.size()) return;
    choice[i] = 0;
  }
}

}  // namespace

std::vector<int> Configurations::stage_order(uint64_t index) const {
  std::vector<int> order;
  for (const config::StageSpace& stage : space_->stages) order.push_back(stage.stage);
  const uint64_t hand = index / order.size();
  Random random(seed_, kDealing, hand);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.uniform_below(i)]);
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(index % order.size()), order.end());
  return order;
}

std::optional<Configuration> Configurations::draw_in_stage(
    const config::StageSpace& stage, uint64_t index, const std::function<bool(const Configuration&)>& usable) const {
  Random random(seed_, kChoosing, index);
  Configuration point{stage.stage, std::vector<size_t>(stage.axes.size())};
  const auto randomise = [&] {
    for (size_t i = 0; i < stage.axes.size(); ++i) point.choice[i] = random.uniform_below(stage.axes[i].values.size());
  };
  const uint64_t count = points(stage);
  for (uint64_t i = 0; i < std::min(count, kDraws); ++i) {
    randomise();
    if (usable(point)) return point;
  }
  for (uint64_t left = count; left > 0; --left) {
    if (usable(point)) return point;
    next_point(stage, point.choice);
  }
  return std::nullopt;
}

std::optional<Configuration> Configurations::draw(uint64_t index,
                                                  const std::function<bool(const Configuration&)>& usable) {
  if (space_->stages.empty()) return std::nullopt;
  for (const int stage : stage_order(index)) {
    if (drained_.count(stage) != 0) continue;
    if (std::optional<Configuration> found = draw_in_stage(*space_->stage(stage), index, usable)) return found;
    drain(stage);
  }
  return std::nullopt;
}

}  // namespace dsat::search
