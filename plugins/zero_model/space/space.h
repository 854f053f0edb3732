// A tuning space as numbers, for models and acquisition.
//
// An arm is a point without its micro batch: a ZeRO stage and a value on each of its axes, read once and kept. A point
// that was measured outside the space (the profile's, for instance) gets an arm too, from its configuration.
// Threading: one thread. Ownership: the space owns its arms, and their addresses last as long as it does.
// Errors: a malformed space or profile throws dsat::Error.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPACE_SPACE_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPACE_SPACE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cost/posterior/places.h"
#include "dsat/config/space.h"
#include "dsat/cost/memory.h"
#include "dsat/searcher.h"
#include "search/configurations.h"
#include "search/micro_batches.h"

namespace dsat::zero_model {

using namespace cost;  // the posterior of memory and its distributions, which the models of speed use too
using search::Configuration;

struct Arm : MemoryArm {
  bool in_space = false;
  bool is_refused = false;  // its sizes clash (devices and pipeline stages, for instance): the host runs no such trial
  std::vector<size_t> choice;  // of an arm in the space
  bool reduce_scatter = true;
  double accumulation = 1;
  double data_parallel_size = 1;
  double most_by_train_batch = std::numeric_limits<double>::infinity();  // by the study's bound of the train batch
  std::string identity;                                                  // of an arm outside the space

  // An order that depends on what the arms are, and not on when they were made.
  bool before(const Arm& other) const {
    return std::tie(stage, choice, identity) < std::tie(other.stage, other.choice, other.identity);
  }
};

inline constexpr double kFarthestBelow = -0.9;  // the least coordinate of a value below its axis

// A trial's configuration.
struct Point {
  const Arm* arm = nullptr;
  int64_t micro_batch = 1;
  bool operator<(const Point& other) const {
    return arm != other.arm ? arm->before(*other.arm) : micro_batch < other.micro_batch;
  }
  bool operator==(const Point& other) const { return arm == other.arm && micro_batch == other.micro_batch; }
  operator MemoryPoint() const { return {arm, micro_batch}; }
};

class ModelSpace {
 public:
  explicit ModelSpace(const Study& study);

  const config::Space& tuning_space() const { return space_; }
  const search::MicroBatches& micro_batches() const { return micro_batches_; }
  const std::vector<ModelAxis>& axes() const { return axes_; }
  bool has_global_batch() const { return global_batch_.has_value(); }
  double data_parallel_size() const { return static_cast<double>(data_parallel_size_); }
  // Parameters of one model replica's shard, of the base configuration or of an arm; a nominal count where the profile
  // has none.
  double parameters() const;
  double parameters(const Arm& arm) const;
  bool has_axis(const std::string& key) const;

  const Arm* arm(const Configuration& configuration);
  // The arm of a measured configuration: an arm of the space where the configuration lies in it.
  const Arm* arm(const Json& config);
  Json overrides(const Point& point) const;
  // Micro steps of an optimizer step.
  double accumulation(const Point& point) const;
  double samples_per_step(const Point& point) const;  // of all devices
  // Devices that a trial runs on.
  double devices(const Point& point) const;
  std::string text(const Point& point) const;

 private:
  Arm read(int stage, const Json& config) const;
  void read_sizes(Arm& arm, const Json& config) const;
  double coordinate(const ModelAxis& axis, const Json* value) const;
  const config::StageSpace* match(const Json& config, std::vector<size_t>& choice) const;

  config::Space space_;
  search::MicroBatches micro_batches_;
  Json base_config_;
  int64_t data_parallel_size_, world_size_;
  std::optional<double> global_batch_;
  std::optional<double> max_train_batch_size_;
  cost::ModelSize size_;
  std::vector<ModelAxis> axes_;
  std::map<Configuration, std::unique_ptr<Arm>> arms_;
  std::map<std::string, std::unique_ptr<Arm>> outside_;
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPACE_SPACE_H_
