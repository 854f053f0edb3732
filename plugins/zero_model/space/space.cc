#include "zero_model/space/space.h"

#include <algorithm>
#include <cmath>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::guided {
namespace {

// What DeepSpeed does where a key is left out, for the keys of the default space.
Json default_of(const std::string& key, int stage) {
  if (key == "zero_optimization.reduce_bucket_size" || key == "zero_optimization.allgather_bucket_size") return 5e8;
  if (key == "zero_optimization.stage3_prefetch_bucket_size") return 5e7;
  if (key == "zero_optimization.overlap_comm") return stage == 3;
  if (key == "zero_optimization.reduce_scatter" || key == "zero_optimization.contiguous_gradients" ||
      key == "zero_optimization.allgather_partitions") {
    return true;
  }
  return nullptr;
}

bool same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

void add_values(std::vector<Knob>& knobs, const config::Axis& axis) {
  auto it = std::find_if(knobs.begin(), knobs.end(), [&](const Knob& knob) { return knob.key == axis.key; });
  if (it == knobs.end()) it = knobs.insert(knobs.end(), Knob{axis.key, {}, false, false, 0, 1});
  for (const Json& value : axis.values) {
    const auto alike = [&](const Json& other) { return same(other, value); };
    if (std::none_of(it->values.begin(), it->values.end(), alike)) it->values.push_back(value);
  }
}

// Numbers are ordered: neighbours behave alike. Two values or words are just different.
void find_scale(Knob& knob) {
  knob.numeric = knob.values.size() > 2 &&
                 std::all_of(knob.values.begin(), knob.values.end(), [](const Json& v) { return v.is_number(); });
  if (!knob.numeric) return;
  knob.low = knob.high = knob.values.front().get<double>();
  for (const Json& value : knob.values) {
    knob.low = std::min(knob.low, value.get<double>());
    knob.high = std::max(knob.high, value.get<double>());
  }
  knob.logarithmic = knob.low > 0 && knob.high >= 4 * knob.low;
}

std::vector<Knob> knobs_of(const config::Space& space) {
  std::vector<Knob> knobs;
  for (const config::StageSpace& stage : space.stages) {
    for (const config::Axis& axis : stage.axes) add_values(knobs, axis);
  }
  for (Knob& knob : knobs) find_scale(knob);
  return knobs;
}

cost::ModelSize size_of(const Study& study) {
  if (!study.profile.is_object()) return {};
  cost::ModelSize size = cost::inputs_from_profile(study.profile).size;
  const Json largest = study.profile.value("largest_layer_params", Json());
  if (largest.is_number()) size.largest_layer_params = largest.get<double>();
  return size;
}

}  // namespace

Lattice::Lattice(const Study& study)
    : space_(config::space_from_json(study.space)),
      micro_batches_(space_),
      base_config_(study.base_config),
      data_parallel_size_(std::max<int64_t>(1, study.limits.data_parallel_size)),
      size_(size_of(study)),
      knobs_(knobs_of(space_)) {}

double Lattice::parameters() const {
  const cost::Setup setup = cost::setup_from_config(base_config_, data_parallel_size_);
  const double shards = static_cast<double>(setup.tensor_parallel_size * setup.pipeline_stages);
  return size_.num_params > 0 ? size_.num_params / shards : 1e9;
}

double Lattice::arm_count() const {
  double count = 0;
  for (const config::StageSpace& stage : space_.stages) {
    double of_stage = 1;
    for (const config::Axis& axis : stage.axes) of_stage *= static_cast<double>(axis.values.size());
    count += of_stage;
  }
  return std::min(count, 0x1p62);
}

double Lattice::coordinate(const Knob& knob, const Json* value) const {
  if (value == nullptr || value->is_null()) return kAbsent;
  if (!knob.numeric) {
    const auto at =
        std::find_if(knob.values.begin(), knob.values.end(), [&](const Json& v) { return same(v, *value); });
    return static_cast<double>(at - knob.values.begin());
  }
  if (!value->is_number()) return kAbsent;
  double low = knob.low, high = knob.high, at = value->get<double>();
  if (knob.logarithmic) {
    if (at <= 0) return kAbsent;
    low = std::log(low), high = std::log(high), at = std::log(at);
  }
  // A value outside the axis is still near its end; below zero is taken for absent.
  return std::clamp((at - low) / (high - low), 0.0, 2.0);
}

Arm Lattice::read(int stage, const Json& config) const {
  Arm arm;
  arm.stage = stage;
  arm.setup = cost::setup_from_config(config, data_parallel_size_);
  arm.setup.micro_batch = 1;
  arm.state_bytes = cost::model_state_bytes(size_, arm.setup);
  arm.buffer_bytes = cost::buffer_bytes(size_, arm.setup);
  arm.optional_buffer_bytes = cost::optional_buffer_bytes(size_, arm.setup);
  const Json* scatter = config::find(config, "zero_optimization.reduce_scatter");
  arm.reduce_scatter = scatter == nullptr || !scatter->is_boolean() || scatter->get<bool>();
  const Json* accumulation = config::find(config, config::kAccumulationKey);
  if (accumulation != nullptr && accumulation->is_number()) arm.accumulation = accumulation->get<double>();
  const config::StageSpace* of = space_.stage(stage);
  for (const Knob& knob : knobs_) {
    const auto has = [&](const config::Axis& axis) { return axis.key == knob.key; };
    if (of == nullptr || std::none_of(of->axes.begin(), of->axes.end(), has)) {
      arm.coordinates.push_back(kAbsent);
      continue;
    }
    const Json otherwise = default_of(knob.key, stage);
    const Json* value = config::find(config, knob.key);
    arm.coordinates.push_back(coordinate(knob, value != nullptr ? value : &otherwise));
  }
  return arm;
}

const Arm* Lattice::arm(const Configuration& configuration) {
  std::unique_ptr<Arm>& slot = arms_[configuration];
  if (slot == nullptr) {
    Json config = base_config_;
    config::overwrite(config, config::overrides(*space_.stage(configuration.stage), configuration.choice, 1));
    slot = std::make_unique<Arm>(read(configuration.stage, config));
    slot->in_space = true;
    slot->choice = configuration.choice;
  }
  return slot.get();
}

// The stage space in which a configuration lies, and its choice; nullptr: it lies outside.
const config::StageSpace* Lattice::match(const Json& config, std::vector<size_t>& choice) const {
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

const Arm* Lattice::arm(const Json& config) {
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

Json Lattice::overrides(const Point& point) const {
  return config::overrides(*space_.stage(point.arm->stage), point.arm->choice, point.micro_batch);
}

double Lattice::accumulation(const Point& point) const {
  if (!space_.micro_batch_divides) return point.arm->accumulation;
  return static_cast<double>(*space_.micro_batch_divides) / static_cast<double>(point.micro_batch);
}

double Lattice::samples_per_step(const Point& point) const {
  return static_cast<double>(point.micro_batch) * accumulation(point) * data_parallel_size();
}

std::string Lattice::text(const Point& point) const {
  return "stage " + std::to_string(point.arm->stage) + ", micro batch " + std::to_string(point.micro_batch);
}

}  // namespace dsat::guided
