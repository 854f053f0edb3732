// Reads the space's axes over all stages, and makes an arm of a configuration when it is first asked for.
// Configurations outside the space differ by their identity without batch sizes.
#include "zero_model/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dsat/config/batch.h"
#include "dsat/config/defaults.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"

namespace dsat::zero_model {
namespace {

bool same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

void add_values(std::vector<ModelAxis>& axes, const config::Axis& axis) {
  auto it = std::find_if(axes.begin(), axes.end(), [&](const ModelAxis& known) { return known.key == axis.key; });
  if (it == axes.end()) it = axes.insert(axes.end(), ModelAxis{axis.key, {}, false, false, 0, 1});
  for (const Json& value : axis.values) {
    const auto alike = [&](const Json& other) { return same(other, value); };
    if (std::none_of(it->values.begin(), it->values.end(), alike)) it->values.push_back(value);
  }
}

// Numbers are ordered, and neighbours behave alike. Two values, or words, are just different.
void find_scale(ModelAxis& axis) {
  axis.numeric = axis.values.size() > 2 &&
                 std::all_of(axis.values.begin(), axis.values.end(), [](const Json& v) { return v.is_number(); });
  if (!axis.numeric) return;
  axis.low = axis.high = axis.values.front().get<double>();
  for (const Json& value : axis.values) {
    axis.low = std::min(axis.low, value.get<double>());
    axis.high = std::max(axis.high, value.get<double>());
  }
  axis.logarithmic = axis.low > 0 && axis.high >= 4 * axis.low;
}

std::vector<ModelAxis> axes_of(const config::Space& space) {
  std::vector<ModelAxis> axes;
  for (const config::StageSpace& stage : space.stages) {
    for (const config::Axis& axis : stage.axes) add_values(axes, axis);
  }
  for (ModelAxis& axis : axes) find_scale(axis);
  return axes;
}

// The least common multiple of the data-parallel sizes that trials may have: a fixed global batch is divided by it.
int64_t common_size(const std::vector<ModelAxis>& axes, const Json& base, int64_t otherwise) {
  std::vector<Json> configs{base};
  for (const ModelAxis& axis : axes) {
    const std::string& key = axis.key;
    if (key != config::kNumGpusKey && key != config::kNumNodesKey && key != config::kPipelineStagesKey) continue;
    std::vector<Json> more;
    for (const Json& config : configs) {
      for (const Json& value : axis.values) config::set(more.emplace_back(config), key, value);
    }
    configs = std::move(more);
  }
  int64_t multiple = 1;
  for (const Json& config : configs) {
    try {
      multiple = std::lcm(multiple, config::data_parallel_size_of(config, otherwise));
    } catch (const Error&) {
      // The host refuses such a trial.
    }
  }
  return multiple;
}

// Into so many parts tensor and pipeline parallelism divide the model.
double shards_of(const cost::Setup& setup) {
  return static_cast<double>(setup.tensor_parallel_size * setup.pipeline_stages);
}

cost::ModelSize size_of(const Study& study) {
  return study.profile.is_object() ? cost::inputs_from_profile(study.profile).size : cost::ModelSize();
}

}  // namespace

ModelSpace::ModelSpace(const Study& study)
    : space_(config::space_from_json(study.space)),
      micro_batches_(space_),
      base_config_(study.base_config),
      data_parallel_size_(std::max<int64_t>(1, study.limits.data_parallel_size)),
      world_size_(study.limits.slots_per_trial),
      size_(size_of(study)),
      axes_(axes_of(space_)) {
  if (!space_.micro_batch_divides) {
    const Json most = study.space.value("max_train_batch_size", Json());
    if (most.is_number()) max_train_batch_size_ = most.get<double>();
    return;
  }
  const int64_t multiple = common_size(axes_, base_config_, data_parallel_size_);
  global_batch_ = static_cast<double>(*space_.micro_batch_divides) * static_cast<double>(multiple);
}

double ModelSpace::parameters() const {
  const double shards = shards_of(cost::setup_from_config(base_config_, data_parallel_size_));
  return size_.num_params > 0 ? size_.num_params / shards : 1e9;
}

double ModelSpace::parameters(const Arm& arm) const {
  const double shards = shards_of(arm.setup);
  if (size_.num_params > 0) return size_.num_params / shards;
  return parameters() * (shards_of(cost::setup_from_config(base_config_, data_parallel_size_)) / shards);
}

bool ModelSpace::has_axis(const std::string& key) const {
  return std::any_of(axes_.begin(), axes_.end(), [&](const ModelAxis& axis) { return axis.key == key; });
}

double ModelSpace::coordinate(const ModelAxis& axis, const Json* value) const {
  if (value == nullptr || value->is_null()) return kAbsent;
  if (!axis.numeric) {
    const auto at =
        std::find_if(axis.values.begin(), axis.values.end(), [&](const Json& v) { return same(v, *value); });
    return static_cast<double>(at - axis.values.begin());
  }
  if (!value->is_number()) return kAbsent;
  double low = axis.low, high = axis.high, at = value->get<double>();
  if (axis.logarithmic) {
    if (at <= 0) return kAbsent;
    low = std::log(low), high = std::log(high), at = std::log(at);
  }
  // A value outside the axis stays near its end, and differs from it: a bound of memory at one may not hold at the
  // other.
  return std::clamp((at - low) / (high - low), kFarthestBelow, 2.0);
}

void ModelSpace::read_sizes(Arm& arm, const Json& config) const {
  const int stage = arm.stage;
  static_cast<MemoryArm&>(arm) =
      cost::arm_of(size_, cost::setup_from_config(config, data_parallel_size_, size_.engine()));
  arm.stage = stage;
  arm.data_parallel_size = static_cast<double>(config::data_parallel_size_of(config, data_parallel_size_));
}

Arm ModelSpace::read(int stage, const Json& config) const {
  Arm arm;
  arm.stage = stage;
  try {
    read_sizes(arm, config);
  } catch (const Error&) {
    arm.is_refused = true;
    read_sizes(arm, base_config_);
  }
  const Json* scatter = config::find(config, "zero_optimization.reduce_scatter");
  arm.reduce_scatter = scatter == nullptr || !scatter->is_boolean() || scatter->get<bool>();
  const Json* accumulation = config::find(config, config::kAccumulationKey);
  if (accumulation != nullptr && accumulation->is_number()) arm.accumulation = accumulation->get<double>();
  if (max_train_batch_size_) {
    arm.most_by_train_batch = std::floor(*max_train_batch_size_ / (arm.accumulation * arm.data_parallel_size));
  }
  const config::StageSpace* of = space_.stage(stage);
  for (const ModelAxis& axis : axes_) {
    const auto has = [&](const config::Axis& own) { return own.key == axis.key; };
    if (of == nullptr || std::none_of(of->axes.begin(), of->axes.end(), has)) {
      arm.coordinates.push_back(kAbsent);
      continue;
    }
    const Json otherwise = config::deepspeed_default(axis.key, stage);
    const Json* value = config::find(config, axis.key);
    arm.coordinates.push_back(coordinate(axis, value != nullptr ? value : &otherwise));
  }
  return arm;
}

const Arm* ModelSpace::arm(const Configuration& configuration) {
  std::unique_ptr<Arm>& slot = arms_[configuration];
  if (slot == nullptr) {
    Json config = base_config_;
    config::overwrite(config, config::overrides(*space_.stage(configuration.stage), configuration.choice, 1));
    slot = std::make_unique<Arm>(read(configuration.stage, config));
    slot->in_space = true;
    if (config::broken_condition(space_.conditions, config, world_size_, false)) slot->is_refused = true;
    slot->choice = configuration.choice;
  }
  return slot.get();
}

// The stage space in which a configuration lies, and its choice; nullptr: it lies outside.
const config::StageSpace* ModelSpace::match(const Json& config, std::vector<size_t>& choice) const {
  const Json* stage = config::find(config, "zero_optimization.stage");
  const config::StageSpace* of = space_.stage(stage != nullptr && stage->is_number_integer() ? stage->get<int>() : 0);
  if (of == nullptr) return nullptr;
  for (const config::Axis& axis : of->axes) {
    const Json* value = config::find(config, axis.key);
    if (value == nullptr) return nullptr;
    const auto at =
        std::find_if(axis.values.begin(), axis.values.end(), [&](const Json& other) { return same(other, *value); });
    if (at == axis.values.end()) return nullptr;
    choice.push_back(static_cast<size_t>(at - axis.values.begin()));
  }
  return of;
}

const Arm* ModelSpace::arm(const Json& config) {
  std::vector<size_t> choice;
  if (const config::StageSpace* stage = match(config, choice)) return arm(Configuration{stage->stage, choice});
  Json rest = config;
  for (const char* key : {config::kMicroBatchKey, config::kTrainBatchKey, config::kAccumulationKey}) rest.erase(key);
  const std::string identity = config::identity(rest);
  std::unique_ptr<Arm>& slot = outside_[identity];
  if (slot == nullptr) {
    const cost::Setup setup = cost::setup_from_config(config, data_parallel_size_);
    slot = std::make_unique<Arm>(read(setup.stage, config));
    slot->identity = identity;
  }
  return slot.get();
}

Json ModelSpace::overrides(const Point& point) const {
  return config::overrides(*space_.stage(point.arm->stage), point.arm->choice, point.micro_batch);
}

double ModelSpace::accumulation(const Point& point) const {
  if (!global_batch_) return point.arm->accumulation;
  return *global_batch_ / (static_cast<double>(point.micro_batch) * point.arm->data_parallel_size);
}

double ModelSpace::samples_per_step(const Point& point) const {
  return static_cast<double>(point.micro_batch) * accumulation(point) * point.arm->data_parallel_size;
}

double ModelSpace::devices(const Point& point) const {
  const cost::Setup& setup = point.arm->setup;
  return point.arm->data_parallel_size * static_cast<double>(setup.tensor_parallel_size * setup.pipeline_stages);
}

std::string ModelSpace::text(const Point& point) const {
  return fmt::format("stage {}, micro batch {}", point.arm->stage, point.micro_batch);
}

}  // namespace dsat::zero_model
