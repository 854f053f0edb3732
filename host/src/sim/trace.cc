// Groups recorded trials by configuration. A trial's answer comes from the nearest group: a recorded micro batch, or an
// interpolation between two.
#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "dsat/base/numbers.h"
#include "dsat/base/spelling.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "sim/csv.h"
#include "sim/trace_columns.h"

namespace dsat::host::sim {
namespace {

constexpr const char* kOther[] = {"outcome", "reason", "model_info", "peak_bytes", "device_memory", "seconds", "slots"};
constexpr const char* kCanonical[] = {"forward", "backward", "step", "latency", "throughput", "FLOPS_per_gpu"};
// The assumed length of a trial without a recorded length.
constexpr double kUsualSeconds = 60;
constexpr int64_t kMostSlots = 1 << 20, kMostSamples = int64_t{1} << 40;

SimulatedRun without_record(const std::string& which) {
  SimulatedRun run;
  run.outcome = Outcome::failed;
  run.seconds = kUsualSeconds;
  run.reason = "the trace has no trial " + which;
  return run;
}

template <size_t N>
bool is_one_of(const char* const (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// A column that does not describe the trial must be a key of DeepSpeed.
void check_column(const std::string& name, const std::string& file) {
  if (is_one_of(kMeasured, name) || is_one_of(kOther, name)) return;
  Json probe = Json::object();
  config::set(probe, name, nullptr);
  const std::vector<config::UnknownKey> unknown = config::unknown_keys(probe);
  if (unknown.empty()) return;
  std::vector<std::string_view> own(std::begin(kMeasured), std::end(kMeasured));
  own.insert(own.end(), std::begin(kOther), std::end(kOther));
  std::string nearest(nearest_name(name, own, slip_tolerance(name)));
  if (nearest.empty()) nearest = unknown.front().suggestion;
  const std::string remedy = nearest.empty() ? "it is neither a metric nor a key of DeepSpeed (docs/simulator.md)"
                                             : fmt::format("did you mean '{}'?", nearest);
  throw Error(fmt::format("{}: unknown column '{}': {}", file, name, remedy));
}

Json value_of(const std::string& cell) {
  Json value = Json::parse(cell, nullptr, false);
  return value.is_discarded() ? Json(cell) : value;
}

// Makes 5e8, 500000000 and 5.0e8 equal.
std::string normal(const Json& value) { return config::identity(Json{{"v", value}}); }

double number_of(const std::string& cell, const std::string& where) {
  const std::optional<double> value = parse_number(cell);
  if (!value || *value < 0) throw Error(fmt::format("{}: '{}' is no number of at least 0", where, cell));
  return *value;
}

int64_t whole_number_of(const std::string& cell, const std::string& where, int64_t least, int64_t most) {
  const double value = number_of(cell, where);
  if (value == std::floor(value) && value >= static_cast<double>(least) && value <= static_cast<double>(most)) {
    return static_cast<int64_t>(value);
  }
  throw Error(fmt::format("{}: '{}' is no whole number from {} to {}", where, cell, least, most));
}

// No device has more than 2^60 bytes.
double bytes_of(const std::string& cell, const std::string& where) {
  constexpr double kMost = 1152921504606846976.0;
  const double bytes = number_of(cell, where);
  if (bytes > kMost) throw Error(fmt::format("{}: '{}' is more than any device has", where, cell));
  return bytes;
}

// Accepts the spellings of common programs; pandas writes True.
bool flag_of(const std::string& cell, const std::string& where) {
  for (const char* yes : {"1", "true", "True"}) {
    if (cell == yes) return true;
  }
  for (const char* no : {"0", "false", "False"}) {
    if (cell == no) return false;
  }
  throw Error(fmt::format("{}: '{}' is neither 1 nor 0", where, cell));
}

Outcome outcome_of(const std::string& cell, const std::string& where) {
  for (const Outcome outcome : {Outcome::completed, Outcome::out_of_memory, Outcome::failed, Outcome::timed_out}) {
    if (cell == to_string(outcome)) return outcome;
  }
  throw Error(fmt::format("{}: outcome '{}': give completed, out_of_memory, failed or timed_out", where, cell));
}

double interpolated(double x, double x0, double y0, double x1, double y1) {
  return x1 == x0 ? y0 : y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// Whether trials were recorded at this micro batch, or both below and above it.
bool encloses(const std::vector<const TraceRow*>& group, int64_t samples) {
  return group.front()->micro_batch <= samples && group.back()->micro_batch >= samples;
}

// If all recorded trials have more samples and ran out of memory, they say nothing about fewer samples.
bool answers(const std::vector<const TraceRow*>& group, int64_t samples) {
  return group.front()->micro_batch <= samples || std::any_of(group.begin(), group.end(), [](const TraceRow* row) {
           return row->outcome == Outcome::completed;
         });
}

// Below the smallest completed micro batch a step takes the same time, so that an unrecorded configuration never looks
// better.
void slow_down(SimulatedRun& run, double share) {
  for (const char* name : {"throughput", "FLOPS_per_gpu"}) {
    const auto metric = run.metrics.find(name);
    if (metric != run.metrics.end()) *metric = metric->get<double>() * share;
  }
}

int64_t micro_batch_of(const SimulatedTrial& trial) { return trial.config.value(config::kMicroBatchKey, int64_t{1}); }

}  // namespace

TraceSurface::TraceSurface(std::string_view text, const std::string& file) {
  const std::vector<std::vector<std::string>> lines = parse_csv(text, file);
  if (lines.size() < 2)
    throw Error(file + ": it has no trials: it needs a line of column names and a line for each trial");
  const std::vector<std::string>& header = lines.front();
  for (const std::string& name : header) {
    check_column(name, file);
    const bool own = is_one_of(kMeasured, name) || is_one_of(kOther, name);
    if (std::count(header.begin(), header.end(), name) > 1) {
      throw Error(fmt::format("{}: the column '{}' appears twice", file, name));
    }
    if (!own && name != kStageKey && name != config::kMicroBatchKey) keys_.push_back(name);
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    read_row(header, lines[i], fmt::format("{}: trial {}", file, i));
  }
  check(file);
  std::map<std::tuple<int, int, std::vector<std::string>>, Group> groups;
  for (const TraceRow& row : rows_) {
    if (!row.model_info) groups[{row.stage, row.slots, row.config}].push_back(&row);
  }
  for (auto& [key, group] : groups) {
    std::stable_sort(group.begin(), group.end(), [](auto* a, auto* b) { return a->micro_batch < b->micro_batch; });
    groups_.push_back(std::move(group));
  }
}

void TraceSurface::read_row(const std::vector<std::string>& header, const std::vector<std::string>& cells,
                            const std::string& where) {
  if (cells.size() != header.size()) {
    throw Error(fmt::format("{} has {} fields, the first line names {}", where, cells.size(), header.size()));
  }
  TraceRow row;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string &name = header[i], &cell = cells[i];
    const std::string at = where + ", " + name;
    const bool setting = std::find(keys_.begin(), keys_.end(), name) != keys_.end();
    if (setting) row.config.push_back(cell.empty() ? "" : normal(value_of(cell)));
    if (setting || cell.empty()) continue;
    if (name == "outcome")
      row.outcome = outcome_of(cell, at);
    else if (name == "reason")
      row.reason = cell;
    else if (name == "model_info")
      row.model_info = flag_of(cell, at);
    else if (name == "peak_bytes")
      row.peak_bytes = bytes_of(cell, at);
    else if (name == "device_memory")
      row.device_memory = bytes_of(cell, at);
    else if (name == "seconds")
      row.seconds = number_of(cell, at);
    else if (name == "slots")
      row.slots = static_cast<int>(whole_number_of(cell, at, 1, kMostSlots));
    else if (name == kStageKey)
      row.stage = static_cast<int>(whole_number_of(cell, at, 0, 3));
    else if (name == config::kMicroBatchKey)
      row.micro_batch = whole_number_of(cell, at, 1, kMostSamples);
    else
      row.metrics[name] = number_of(cell, at);
  }
  rows_.push_back(std::move(row));
}

void TraceSurface::check(const std::string& file) const {
  const bool sized = std::any_of(rows_.begin(), rows_.end(), [](const TraceRow& row) {
    return row.model_info && row.outcome == Outcome::completed && row.metrics.contains("num_params");
  });
  if (!sized) {
    throw Error(file + ": no trial has the model's size: add one with model_info 1 and num_params");
  }
  if (metrics().empty()) throw Error(file + ": no completed trial has a metric");
}

int TraceSurface::slots() const {
  int most = 1;
  for (const TraceRow& row : rows_) most = std::max(most, row.slots);
  return most;
}

std::vector<std::string> TraceSurface::metrics() const {
  std::vector<std::string> found;
  for (const char* name : kCanonical) {
    const bool there = std::any_of(rows_.begin(), rows_.end(), [&](const TraceRow& row) {
      return !row.model_info && row.outcome == Outcome::completed && row.metrics.contains(name);
    });
    if (there) found.emplace_back(name);
  }
  return found;
}

Json TraceSurface::base_config() const {
  Json config{{config::kMicroBatchKey, 1}};
  for (size_t k = 0; k < keys_.size(); ++k) {
    if (keys_[k] == config::kTrainBatchKey || keys_[k] == config::kAccumulationKey) continue;
    std::set<std::string> values;
    Json axis = Json::array();
    for (const TraceRow& row : rows_) {
      if (row.config[k].empty() || !values.insert(row.config[k]).second) continue;
      axis.push_back(Json::parse(row.config[k]).at("v"));
    }
    if (axis.size() == 1) axis = axis[0];
    if (!axis.empty()) config::set(config, keys_[k], axis);
  }
  int stage = 3;
  for (const TraceRow& row : rows_) {
    if (!row.model_info) stage = std::min(stage, row.stage);
  }
  config::set(config, kStageKey, stage);
  return config;
}

// Returns the recorded configuration of the stage that answers the trial. Configurations with the trial's number of
// slots come first; then those that cover its micro batch; then those with its own keys or with micro batches around
// its own; then those with the fewest different keys. The first of equal ones is chosen. A key with an empty cell may
// differ.
const TraceSurface::Group* TraceSurface::nearest(const SimulatedTrial& trial, int stage, std::string& differs) const {
  std::vector<std::string> wanted;
  for (const std::string& key : keys_) {
    const Json* value = config::find(trial.config, key);
    wanted.push_back(value == nullptr ? "" : normal(*value));
  }
  const Group* best = nullptr;
  const int64_t samples = micro_batch_of(trial);
  std::tuple<bool, bool, bool, size_t> least{true, true, true, keys_.size() + 1};
  for (const Group& group : groups_) {
    if (group.front()->stage != stage) continue;
    const int slots = group.front()->slots;
    const bool is_other_size = slots != 0 && slots != trial.slots;
    std::string keys = is_other_size ? "slots" : "";
    size_t count = 0;
    for (size_t k = 0; k < keys_.size(); ++k) {
      const std::string& recorded = group.front()->config[k];
      const bool follows = keys_[k] == config::kTrainBatchKey;  // it follows from the micro batch
      if (follows || recorded == wanted[k]) continue;
      ++count;
      if (!recorded.empty()) keys += (keys.empty() ? "" : ", ") + keys_[k];
    }
    const std::tuple distance{is_other_size, !answers(group, samples), count > 0 && !encloses(group, samples), count};
    if (distance >= least) continue;
    least = distance;
    best = &group;
    differs = keys;
  }
  return best;
}

// check() has ensured that there is one.
const TraceRow& TraceSurface::model_row() const {
  return *std::find_if(rows_.begin(), rows_.end(), [](const TraceRow& row) {
    return row.model_info && row.outcome == Outcome::completed && row.metrics.contains("num_params");
  });
}

SimulatedRun TraceSurface::answer_of(const TraceRow& row) const {
  SimulatedRun run;
  run.outcome = row.outcome;
  run.reason = row.reason.empty() && row.outcome != Outcome::completed ? to_string(row.outcome) : row.reason;
  if (row.outcome == Outcome::completed) run.metrics = row.metrics;
  if (row.peak_bytes) run.peak_bytes = static_cast<uint64_t>(*row.peak_bytes);
  if (row.device_memory) run.device_memory_bytes = static_cast<uint64_t>(*row.device_memory);
  run.seconds = row.seconds.value_or(kUsualSeconds);
  return run;
}

// Returns the first trial of another configuration of this stage and size that ran out of memory with at most `samples`
// samples, but more than this group completed. An unrecorded configuration must not look better than a recorded one.
const TraceRow* TraceSurface::too_big_elsewhere(const Group& group, int64_t samples) const {
  int64_t completed = 0;
  for (const TraceRow* row : group) {
    if (row->outcome == Outcome::completed) completed = std::max(completed, row->micro_batch);
  }
  const TraceRow* found = nullptr;
  for (const TraceRow& row : rows_) {
    const bool is_alike = row.stage == group.front()->stage && row.slots == group.front()->slots;
    const bool bounds = !row.model_info && row.outcome == Outcome::out_of_memory && is_alike &&
                        row.micro_batch > completed && row.micro_batch <= samples;
    if (bounds && (found == nullptr || row.micro_batch < found->micro_batch)) found = &row;
  }
  return found;
}

// Beyond the largest completed micro batch, adds the model's activations for each further sample.
bool TraceSurface::fits(const TraceRow& largest, int64_t samples) const {
  const TraceRow& model = model_row();
  const auto a_sample = model.metrics.find("activation_mem_per_gpu");
  if (!largest.peak_bytes || !model.device_memory || a_sample == model.metrics.end()) return true;
  const auto further = static_cast<double>(samples - largest.micro_batch);
  return *largest.peak_bytes + further * a_sample->get<double>() / static_cast<double>(model.micro_batch) <=
         *model.device_memory;
}

// Answers a trial above the largest completed micro batch (`largest`; nullptr: nothing completed). The answer is out of
// memory if this was recorded for this or another configuration of the stage, or if the model's activations do not fit;
// otherwise it is that of `largest`.
SimulatedRun TraceSurface::beyond(const Group& group, const TraceRow* largest, const SimulatedTrial& trial) const {
  const int64_t samples = micro_batch_of(trial);
  const auto out = std::find_if(group.begin(), group.end(),
                                [](const TraceRow* row) { return row->outcome == Outcome::out_of_memory; });
  const TraceRow* too_big = out == group.end() ? nullptr : *out;
  const bool is_bound = too_big && too_big->micro_batch > (largest ? largest->micro_batch : 0);
  if (is_bound && (largest || too_big->micro_batch <= samples)) return answer_of(*too_big);
  if (const TraceRow* elsewhere = too_big_elsewhere(group, samples)) return answer_of(*elsewhere);
  if (!largest && too_big) return without_record("at so few samples");
  if (!largest) return answer_of(*group.front());
  if (fits(*largest, samples)) return mixture(*largest, *largest, trial);
  SimulatedRun run;
  run.outcome = Outcome::out_of_memory;
  run.seconds = largest->seconds.value_or(kUsualSeconds);
  run.reason = "no trial of this size was recorded, and the model's activations do not fit";
  return run;
}

// Interpolates between two completed trials. Below both, a step takes as long as that of the smaller one.
SimulatedRun TraceSurface::mixture(const TraceRow& below, const TraceRow& above, const SimulatedTrial& trial) const {
  SimulatedRun run = answer_of(below);
  const auto x = static_cast<double>(micro_batch_of(trial));
  const auto x0 = static_cast<double>(below.micro_batch), x1 = static_cast<double>(above.micro_batch);
  for (auto& item : run.metrics.items()) {
    const auto other = above.metrics.find(item.key());
    if (other != above.metrics.end()) {
      item.value() = interpolated(x, x0, item.value().get<double>(), x1, other->get<double>());
    }
  }
  if (below.peak_bytes && above.peak_bytes) {
    run.peak_bytes = static_cast<uint64_t>(interpolated(x, x0, *below.peak_bytes, x1, *above.peak_bytes));
  }
  if (x < x0) slow_down(run, x / x0);
  // An interpolated latency would not agree with throughput and batch size.
  const auto train_batch = trial.config.value(config::kTrainBatchKey, 0.0);
  if (run.metrics.contains("throughput") && train_batch > 0) {
    run.metrics["latency"] = train_batch * 1e6 / run.metrics["throughput"].get<double>();
  }
  return run;
}

// A recorded micro batch gives one of its trials; one between two completed ones, a mixture; one below all, the time of
// the smallest.
SimulatedRun TraceSurface::between(const Group& group, const SimulatedTrial& trial) const {
  const int64_t samples = micro_batch_of(trial);
  Group same;
  const TraceRow *below = nullptr, *above = nullptr;
  for (const TraceRow* row : group) {
    if (row->micro_batch == samples) same.push_back(row);
    if (row->outcome != Outcome::completed) continue;
    if (row->micro_batch < samples) below = row;
    if (row->micro_batch > samples && !above) above = row;
  }
  if (!same.empty()) return answer_of(*same[trial.seed % same.size()]);
  if (!above) return beyond(group, below, trial);
  return mixture(below ? *below : *above, *above, trial);
}

SimulatedRun TraceSurface::run(const SimulatedTrial& trial) const {
  if (trial.model_info) return answer_of(model_row());
  const int stage = config::zero_stage(trial.config);
  std::string differs;
  const Group* group = nearest(trial, stage, differs);
  if (group == nullptr) {
    return without_record(fmt::format("of ZeRO stage {}: leave it out with --zero-stages", stage));
  }
  SimulatedRun run = between(*group, trial);
  if (!differs.empty() && run.outcome == Outcome::completed) {
    run.reason = "answered by the nearest recorded configuration, which differs in " + differs;
  }
  return run;
}

}  // namespace dsat::host::sim
