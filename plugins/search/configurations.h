// Random configurations: a ZeRO stage and a value for each of its axes, drawn for a lineage.
//
// A lineage's configuration depends on the seed, the lineage's number and the usable configurations, never on the order
// in which trials ended. Stages are dealt like cards: as many lineages in a row as there are stages get every stage
// once, so a small budget misses no stage by chance.
// Threading: plain values. Ownership: refers to the space, which must live longer. Errors: none.
#ifndef DSAT_PLUGINS_SEARCH_CONFIGURATIONS_H_
#define DSAT_PLUGINS_SEARCH_CONFIGURATIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::search {

// A point of the space without its micro batch.
struct Configuration {
  int stage = 0;
  std::vector<size_t> choice;  // index into the values of each of the stage's axes
  bool operator<(const Configuration& other) const {
    return stage != other.stage ? stage < other.stage : choice < other.choice;
  }
  bool operator==(const Configuration& other) const { return stage == other.stage && choice == other.choice; }
};

class Configurations {
 public:
  Configurations(uint64_t seed, const config::Space& space) : seed_(seed), space_(&space) {}

  // A configuration for lineage `index` that `usable` accepts. nullopt: none is left. A stage with none is drained.
  std::optional<Configuration> draw(uint64_t index, const std::function<bool(const Configuration&)>& usable);

  // The limit of a search in order, in points of a stage.
  static constexpr size_t kMostScanned = 4096;

  // Stages with nothing left. They are part of a searcher's state.
  const std::set<int>& drained() const { return drained_; }
  void drain(int stage) { drained_.insert(stage); }
  void set_drained(std::set<int> stages) { drained_ = std::move(stages); }

 private:
  std::vector<int> stage_order(uint64_t index) const;
  std::optional<Configuration> draw_in_stage(const config::StageSpace& stage, uint64_t index,
                                             const std::function<bool(const Configuration&)>& usable) const;

  uint64_t seed_;
  const config::Space* space_;
  std::set<int> drained_;
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_CONFIGURATIONS_H_
