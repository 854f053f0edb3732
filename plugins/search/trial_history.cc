// Keeps one entry for each configuration, two Pareto fronts of memory bounds, the best trial of each stage, and a
// memory model that is fitted when it is needed.
#include "search/trial_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/posterior/memory_keys.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "search/observation.h"

namespace dsat::search {
namespace {

constexpr double kHopeless = 0.05;
// The model's ceiling is limited to this multiple of what is known to fit, since the ceiling is arbitrary if memory
// hardly grows with the micro batch.
constexpr double kFarthest = 64;
constexpr double kUnbounded = std::numeric_limits<int64_t>::max() / 4;

// The axes of all stages whose effect on memory is unknown. Keys whose larger values are known to need a little more
// are left out, and so is contiguous_gradients, which comparable() compares.
std::vector<std::string> unread_keys(const config::Space& space) {
  std::vector<std::string> keys;
  for (const config::StageSpace& stage : space.stages) {
    for (const config::Axis& axis : stage.axes) {
      if (cost::memory_effect(axis.key) != cost::MemoryEffect::unknown ||
          axis.key == "zero_optimization.contiguous_gradients") {
        continue;
      }
      if (std::find(keys.begin(), keys.end(), axis.key) == keys.end()) keys.push_back(axis.key);
    }
  }
  return keys;
}

// Do the two setups differ only in buckets, overlap and micro batch?
bool comparable(const cost::Setup& a, const cost::Setup& b) {
  return a.stage == b.stage && a.precision == b.precision && a.accumulation_dtype == b.accumulation_dtype &&
         a.optimizer == b.optimizer && a.optimizer_device == b.optimizer_device &&
         a.parameter_device == b.parameter_device && a.offload_ratio == b.offload_ratio &&
         a.hierarchical_partition == b.hierarchical_partition && a.data_parallel_size == b.data_parallel_size &&
         a.tensor_parallel_size == b.tensor_parallel_size && a.pipeline_stages == b.pipeline_stages &&
         a.activation_checkpointing == b.activation_checkpointing && a.contiguous_gradients == b.contiguous_gradients &&
         a.unread == b.unread;
}

// Does `a` need no more memory than `b` at any micro batch, whatever the model's parameters?
bool needs_no_more(const cost::Setup& a, const cost::Setup& b) {
  return comparable(a, b) && a.reduce_bucket_elements <= b.reduce_bucket_elements &&
         a.allgather_bucket_elements <= b.allgather_bucket_elements &&
         a.prefetch_bucket_elements <= b.prefetch_bucket_elements &&
         a.max_reuse_distance_elements <= b.max_reuse_distance_elements && a.max_live_elements <= b.max_live_elements &&
         a.persistence_threshold_elements <= b.persistence_threshold_elements &&
         a.max_persistent_elements <= b.max_persistent_elements && a.overlap_comm <= b.overlap_comm;
}

double finite_or(double value, double otherwise) { return std::isfinite(value) ? value : otherwise; }

}  // namespace

TrialHistory::TrialHistory(const Study& study)
    : maximise_(study.maximise),
      accumulation_follows_(!study.space.value("micro_batch_divides", Json()).is_null()),
      data_parallel_size_(study.limits.data_parallel_size),
      base_config_(study.base_config),
      unread_keys_(unread_keys(config::space_from_json(study.space))) {
  if (study.profile.is_object()) inputs_ = cost::inputs_from_profile(study.profile);
  if (study.device_memory_bytes) inputs_.device_memory_bytes = static_cast<double>(*study.device_memory_bytes);
  for (const ObservedTrial& seen : training_trials(study)) {
    learn(seen.trial, seen.config, seen.outcome, seen.metric(study.metric), seen.peak_bytes);
  }
}

Json TrialHistory::merged(const Json& overrides) const {
  Json config = base_config_;
  config::overwrite(config, overrides);
  return config;
}

cost::Setup TrialHistory::setup(const Json& merged) const {
  cost::Setup setup = cost::setup_from_config(merged, data_parallel_size_, inputs_.size.engine());
  for (const std::string& key : unread_keys_) {
    const Json* value = config::find(merged, key);
    setup.unread += (value == nullptr ? "" : value->dump()) + ';';
  }
  return setup;
}

// The key leaves out batch sizes that follow from others, because the host completes them.
std::string TrialHistory::key(Json merged) const {
  merged.erase(config::kTrainBatchKey);
  const auto accumulation = merged.find(config::kAccumulationKey);
  const bool given = accumulation != merged.end() && accumulation->is_number();
  if (accumulation_follows_ || !given) merged[config::kAccumulationKey] = 1;
  return config::identity(merged);
}

void TrialHistory::learn(TrialId trial, const Json& merged, Outcome outcome, std::optional<double> metric,
                         std::optional<double> peak_bytes) {
  if (is_failure(outcome)) failed_.emplace(key(merged), TriedConfiguration{trial, outcome, std::nullopt});
  if (!is_informative(outcome)) return;
  const cost::Setup of = setup(merged);
  const bool ran_out = outcome == Outcome::out_of_memory;
  StageHistory& stage = stages_[of.stage];
  Unread& unread = stage.unread[of.unread];
  any_peak_ = any_peak_ || (peak_bytes && !ran_out);
  if (ran_out) {
    unread.too_big = std::min(unread.too_big, of.micro_batch);
    stage.too_big.insert(of.micro_batch);
  } else {
    unread.fits = std::max(unread.fits, of.micro_batch);
    stage.fits = std::max(stage.fits, of.micro_batch);
  }
  (ran_out ? ran_out_ : fitted_).add(of);
  observe({of, ran_out, peak_bytes});
  HistoryEntry& entry = measured_[key(merged)];
  const TrialId before = entry.first;
  // entry.first: the first trial with a measurement; while there is none, the first trial.
  if (metric && entry.count == 0) entry.first = kNoTrial;
  if (metric || entry.count == 0) entry.first = std::min(entry.first, trial);
  entry.stage = of.stage;
  entry.micro_batch = of.micro_batch;
  entry.out_of_memory = outcome == Outcome::out_of_memory && entry.count == 0;
  if (metric) {
    entry.sum += *metric;
    ++entry.count;
    compare(entry, before);
  }
}

// With many observations, one more changes a fit little. So the fit is repeated only when their number has grown by
// about a thirty-second. Only the number counts, so a restored searcher decides like the interrupted one.
void TrialHistory::observe(const cost::Observation& observation) {
  window_.add(observation);
  int64_t interval = 1;
  while (interval * 64 <= learned_) interval *= 2;
  if (++learned_ % interval != 0) return;
  observations_ = window_.observations();
  fit_.reset();
}

// Compares a changed entry with the best of its stage. `before`: the entry's first trial before the change.
void TrialHistory::compare(const HistoryEntry& entry, TrialId before) {
  std::optional<BestTrial>& best = stages_[entry.stage].best;
  const BestTrial candidate{entry.first, entry.sum / entry.count, entry.micro_batch};
  const auto wins = [this](const BestTrial& a, const BestTrial& b) {
    return better(a.metric, b.metric) || (a.metric == b.metric && a.trial < b.trial);
  };
  const bool was_best = best && best->trial == before;
  if (!best || wins(candidate, *best)) {
    best = candidate;
  } else if (was_best) {
    // The best was measured again and is worse than it seemed, so another one may be the best now.
    best = candidate;
    for (const auto& [key, other] : measured_) {
      if (other.count == 0 || other.stage != entry.stage) continue;
      const BestTrial rival{other.first, other.sum / other.count, other.micro_batch};
      if (wins(rival, *best)) best = rival;
    }
  }
}

// Does a's bound imply b's?
bool TrialHistory::ParetoFront::implies(const cost::Setup& a, const cost::Setup& b) const {
  return fits_ ? needs_no_more(b, a) && b.micro_batch <= a.micro_batch
               : needs_no_more(a, b) && a.micro_batch <= b.micro_batch;
}

void TrialHistory::ParetoFront::add(const cost::Setup& seen) {
  for (const cost::Setup& known : setups_) {
    if (implies(known, seen)) return;
  }
  setups_.erase(std::remove_if(setups_.begin(), setups_.end(), [&](const auto& known) { return implies(seen, known); }),
                setups_.end());
  setups_.push_back(seen);
}

std::optional<TriedConfiguration> TrialHistory::find(const Json& merged) const {
  const std::string wanted = key(merged);
  const auto it = measured_.find(wanted);
  if (it == measured_.end()) {
    const auto failure = failed_.find(wanted);
    return failure == failed_.end() ? std::nullopt : std::optional(failure->second);
  }
  const HistoryEntry& entry = it->second;
  TriedConfiguration known{entry.first, entry.out_of_memory ? Outcome::out_of_memory : Outcome::completed, {}};
  if (entry.count > 0) known.metric = entry.sum / entry.count;
  return known;
}

const cost::MemoryFit& TrialHistory::fit() const {
  if (!fit_) fit_ = cost::fit_memory(inputs_, observations_);
  return *fit_;
}

// Bounds by trials outweigh the model.
void TrialHistory::bound(Ceiling& ceiling, const cost::Setup& setup) const {
  for (const cost::Setup& seen : fitted_.setups()) {
    if (needs_no_more(setup, seen)) ceiling.fits = std::max(ceiling.fits, seen.micro_batch);
  }
  for (const cost::Setup& seen : ran_out_.setups()) {
    if (needs_no_more(seen, setup)) {
      ceiling.too_big = std::min(ceiling.too_big.value_or(seen.micro_batch), seen.micro_batch);
    }
  }
  // A shared device can run out of memory at a size that fitted before. The fitted size counts.
  if (ceiling.too_big && *ceiling.too_big <= ceiling.fits) ceiling.too_big = ceiling.fits + 1;
  const double fits = static_cast<double>(ceiling.fits);
  ceiling.certain = std::max(ceiling.certain, fits);
  ceiling.likely = std::max(ceiling.likely, fits);
  ceiling.possible = std::max({ceiling.possible, ceiling.likely, fits});
  if (ceiling.too_big) {
    const double most = static_cast<double>(*ceiling.too_big - 1);
    ceiling.certain = std::min(ceiling.certain, most);
    ceiling.likely = std::min(ceiling.likely, most);
    ceiling.possible = std::min(ceiling.possible, most);
  }
}

// Without measured peaks the model has its limit from trials that ran out of memory. Where these had other values of
// unknown effect, this setup may hold much more. That is not so if two such combinations turned out to have the same
// limit. If two had different limits in any stage, the model explains none of them.
bool TrialHistory::is_beyond_model(const cost::Setup& setup) const {
  if (unread_keys_.empty() || any_peak_) return false;
  bool ran_out_elsewhere = false, is_alike = false;
  for (const auto& [number, stage] : stages_) {
    for (const auto& [values, one] : stage.unread) {
      ran_out_elsewhere |= number == setup.stage && values != setup.unread && one.ran_out();
      for (const auto& [others, other] : stage.unread) {
        if (one.fits >= other.too_big && values != others) return true;
        is_alike |= values < others && one.fits > 0 && other.fits > 0 && one.ran_out() && other.ran_out();
      }
    }
  }
  return ran_out_elsewhere && !is_alike;
}

// Doubles what fitted, until these values run out of memory themselves; then halves the range. A stage begins with what
// another one holds with these values.
void TrialHistory::look_beyond(Ceiling& ceiling, const cost::Setup& setup) const {
  Unread own;
  int64_t elsewhere = 1;
  for (const auto& [number, stage] : stages_) {
    const auto seen = stage.unread.find(setup.unread);
    if (seen == stage.unread.end()) continue;
    if (number == setup.stage) own = seen->second;
    elsewhere = std::max(elsewhere, seen->second.fits);
  }
  const int64_t held = std::max(ceiling.fits, own.fits);
  const int64_t too_big = std::min(own.too_big, ceiling.too_big.value_or(own.too_big));
  const double next = too_big < Unread().too_big ? static_cast<double>(held + too_big) / 2
                                                 : static_cast<double>(held == 0 ? elsewhere : 2 * held);
  const double most = ceiling.too_big ? static_cast<double>(*ceiling.too_big - 1) : kUnbounded;
  ceiling.likely = std::min(most, std::max(static_cast<double>(held), next));
  ceiling.possible = ceiling.likely;
}

Ceiling TrialHistory::ceiling(const cost::Setup& setup) const {
  Ceiling ceiling;
  if (inputs_.device_memory_bytes) {
    const cost::Interval model = cost::micro_batch_ceiling(fit(), setup);
    ceiling.certain = std::max(0.0, finite_or(model.low, 0));
    ceiling.likely = std::max(0.0, finite_or(model.value, kUnbounded));
    ceiling.possible = std::max(0.0, finite_or(model.high, kUnbounded));
    const double known = std::max({1.0, ceiling.certain, static_cast<double>(largest_fit(setup.stage))});
    ceiling.likely = std::min(ceiling.likely, kFarthest * known);
    ceiling.possible = std::min(ceiling.possible, kFarthest * known);
  } else {
    // With an unknown device memory, the expected size is the largest that ran in this stage or in a lower one, since a
    // higher stage holds less of the model. An out-of-memory trial of this or a higher stage is the only upper bound.
    ceiling.possible = kUnbounded;
    for (const auto& [stage, seen] : stages_) {
      if (stage <= setup.stage) ceiling.likely = std::max(ceiling.likely, static_cast<double>(seen.fits));
    }
    for (const auto& [stage, seen] : stages_) {
      if (stage < setup.stage) continue;
      if (!unread_keys_.empty()) {  // other values may need much more
        const auto own = seen.unread.find(setup.unread);
        const bool is_bound = own != seen.unread.end() && own->second.too_big > own->second.fits;
        if (is_bound) ceiling.possible = std::min(ceiling.possible, static_cast<double>(own->second.too_big));
        continue;
      }
      const auto above = seen.too_big.upper_bound(std::max(seen.fits, static_cast<int64_t>(ceiling.likely)));
      if (above != seen.too_big.end()) ceiling.possible = std::min(ceiling.possible, static_cast<double>(*above));
    }
  }
  bound(ceiling, setup);
  if (is_beyond_model(setup)) look_beyond(ceiling, setup);
  return ceiling;
}

bool TrialHistory::hopeless(const cost::Setup& setup) const {
  const Ceiling known = ceiling(setup);
  if (known.too_big && *known.too_big <= setup.micro_batch) return true;
  if (is_beyond_model(setup)) return false;
  const auto stage = stages_.find(setup.stage);
  const bool stage_ran_out = stage != stages_.end() && !stage->second.too_big.empty();
  if (!stage_ran_out) return false;
  if (!inputs_.device_memory_bytes) return cost::probability_of_fitting(fit(), setup) < kHopeless;
  // The peak alone: a failure that the model cannot explain may not hold for leaner values.
  return cost::predict_peak(fit(), setup).low > *inputs_.device_memory_bytes;
}

bool TrialHistory::is_doubtful(int stage) const {
  const auto it = stages_.find(stage);
  return it != stages_.end() && it->second.fits == 0 && !it->second.too_big.empty();
}

bool TrialHistory::nothing_fits() const {
  return std::all_of(stages_.begin(), stages_.end(), [](const auto& stage) { return stage.second.fits == 0; });
}

int64_t TrialHistory::largest_fit(int stage) const {
  const auto it = stages_.find(stage);
  return it == stages_.end() ? 0 : it->second.fits;
}

std::optional<TrialHistory::BestTrial> TrialHistory::best_of(std::optional<int> stage) const {
  std::optional<BestTrial> best;
  for (const auto& [number, of_stage] : stages_) {
    const std::optional<BestTrial>& here = of_stage.best;
    if (!here || (stage && number != *stage)) continue;
    const bool wins =
        !best || better(here->metric, best->metric) || (here->metric == best->metric && here->trial < best->trial);
    if (wins) best = here;
  }
  return best;
}

}  // namespace dsat::search
