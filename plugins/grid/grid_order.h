// The order in which a grid search goes through the values of a stage's axes: from the user's own outwards.
//
// First the user's values, then all that differ from them in one axis, then in two, and so on; among those the first
// axes first, and of an axis the values as they are listed. Most of a large grid is never reached, so what comes
// first should be near what the user runs today.
// Threading: plain values. Ownership: refers to the stage's space, which must live longer. Errors: none.
#ifndef DSAT_PLUGINS_GRID_GRID_ORDER_H_
#define DSAT_PLUGINS_GRID_GRID_ORDER_H_

#include <optional>
#include <vector>

#include "search/configurations.h"

namespace dsat::search {

// The user's value of each axis: the base configuration's, else DeepSpeed's default, else the first that is listed.
std::vector<size_t> usual_choice(const config::StageSpace& stage, const Json& base_config);

class GridOrder {
 public:
  GridOrder(const config::StageSpace& stage, std::vector<size_t> usual) : stage_(&stage), usual_(std::move(usual)) {}

  // The choice at a position; nullptr: the grid is shorter. Choices are made as far as they are asked for.
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
