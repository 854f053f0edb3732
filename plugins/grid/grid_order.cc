// Lists a stage's choices of values by the number of axes on which they differ from the user's. Choices are generated
// as they are asked for.
#include "grid/grid_order.h"

#include <algorithm>

#include "dsat/config/defaults.h"
#include "dsat/config/json.h"

namespace dsat::search {

std::vector<size_t> usual_choice(const config::StageSpace& stage, const Json& base_config) {
  std::vector<size_t> choice;
  for (const config::Axis& axis : stage.axes) {
    const Json* given = config::find(base_config, axis.key);
    const Json wanted =
        given != nullptr && !given->is_null() ? *given : config::deepspeed_default(axis.key, stage.stage);
    const auto it = std::find(axis.values.begin(), axis.values.end(), wanted);
    choice.push_back(it == axis.values.end() ? 0 : static_cast<size_t>(it - axis.values.begin()));
  }
  return choice;
}

const std::vector<size_t>* GridOrder::at(size_t position) {
  while (position >= choices_.size() && next_distance_ <= usual_.size()) add_distance(next_distance_++);
  return position < choices_.size() ? &choices_[position] : nullptr;
}

void GridOrder::add_distance(size_t distance) {
  std::vector<size_t> choice = usual_;
  vary(0, distance, choice);
}

// Adds every way to change `left` of the axes from `axis` on.
void GridOrder::vary(size_t axis, size_t left, std::vector<size_t>& choice) {
  if (left == 0) {
    choices_.push_back(choice);
    return;
  }
  if (choice.size() - axis < left) return;
  for (size_t value = 0; value < stage_->axes[axis].values.size(); ++value) {
    if (value == usual_[axis]) continue;
    choice[axis] = value;
    vary(axis + 1, left - 1, choice);
  }
  choice[axis] = usual_[axis];
  vary(axis + 1, left, choice);
}

}  // namespace dsat::search
