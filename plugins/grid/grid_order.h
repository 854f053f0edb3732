// The order of a grid search over the values of a stage's axes.
//
// The user's values come first, then all that differ from them in one axis, then in two, and so on. Among those the
// first axes come first, and the values of an axis in their listed order. A search reaches only a small part of a large
// grid, so choices near the user's come first.
// Threading: plain values. Ownership: refers to the stage's space, which must live longer. Errors: none.
#ifndef DSAT_PLUGINS_GRID_GRID_ORDER_H_
#define DSAT_PLUGINS_GRID_GRID_ORDER_H_

#include <vector>

#include "search/configurations.h"

namespace dsat::search {

// The user's value of each axis: from the base configuration, else DeepSpeed's default, else the first listed value.
std::vector<size_t> usual_choice(const config::StageSpace& stage, const Json& base_config);

class GridOrder {
 public:
  GridOrder(const config::StageSpace& stage, std::vector<size_t> usual) : stage_(&stage), usual_(std::move(usual)) {}

  // The choice at a position; nullptr: the grid is shorter.
  const std::vector<size_t>* at(size_t position);

 private:
  void add_distance(size_t distance);
  void vary(size_t axis, size_t left, std::vector<size_t>& choice);

  const config::StageSpace* stage_;
  std::vector<size_t> usual_;
  std::vector<std::vector<size_t>> choices_;
  size_t next_distance_ = 0;
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_GRID_GRID_ORDER_H_
