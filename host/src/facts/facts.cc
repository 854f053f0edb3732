// Reads the journal once and computes the facts one after another. A damaged record may have wrong ids and types, which
// are checked here.
#include "dsat/host/facts.h"

#include <algorithm>

#include "base/clock.h"
#include "base/guarded.h"
#include "command/hugging_face.h"
#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "dsat/config/world.h"
#include "dsat/error.h"
#include "facts/passed_on.h"
#include "facts/sections.h"
#include "finals/end_to_end.h"
#include "finals/gain.h"
#include "finals/twin_check.h"
#include "record/devices.h"
#include "record/read_journal.h"

namespace dsat::host {
namespace {

std::optional<int64_t> integer_at(const Json& config, const char* key) {
  const Json* value = config.is_object() ? config::find(config, key) : nullptr;
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

const char* phase_name(Phase phase) {
  constexpr const char* kNames[] = {"profiler", "baseline", "searcher", "finals", "verification", "twin", "comparison"};
  return kNames[static_cast<size_t>(phase)];
}

std::optional<double> metric_of(const TrialRecord& record, const std::string& metric) {
  return record.outcome == Outcome::completed ? config::number_at(record.metrics, metric) : std::nullopt;
}

TrialPlace place_of(const Trial& trial, bool live) {
  if (trial.record.outcome) return TrialPlace::ended;
  const bool runs = trial.state == TrialState::running || trial.state == TrialState::stopping;
  return runs && live ? TrialPlace::running : TrialPlace::waiting;
}

void add_end(TrialFacts& facts, const EndDetails& end) {
  if (end.exit_code >= 0) facts.exit_code = end.exit_code;
  if (end.term_signal != 0) facts.term_signal = end.term_signal;
  facts.warnings = end.warnings;
  facts.stderr_tail = end.tail;
  facts.engine_version = end.engine_version;
  facts.torch_version = end.torch_version;
  facts.driver_version = end.driver_version;
  facts.checkpoint_outside = end.checkpoint_outside;
}

// Returns the memory as the study determines it: from the user, the profile or the first trial, or the slots.
std::optional<uint64_t> device_memory(const JournalReading& reading) {
  const auto at = [](const Json& object, const char* key) {
    const auto value = object.is_object() ? integer_at(object, key) : std::nullopt;
    return value && *value > 0 ? std::optional<uint64_t>(static_cast<uint64_t>(*value)) : std::nullopt;
  };
  if (const auto given = at(reading.plan, "device_memory_bytes")) return given;
  if (const auto profiled = at(reading.record.profile, "device_memory_bytes")) return profiled;
  for (const Trial& trial : reading.trials) {
    if (trial.end && trial.end->device_memory_bytes) return trial.end->device_memory_bytes;
  }
  return reading.plan.is_object() ? at(reading.plan.value("slots", Json::object()), "device_memory_bytes")
                                  : std::nullopt;
}

// Returns the first trial of the user's own configuration, even if it belongs to the search or the profile. With
// --no-baseline such a trial has no special role, so there is none.
std::optional<uint64_t> baseline_of(const JournalReading& reading, const StudyRecord& record) {
  const auto wanted = reading.plan.find("baseline");
  if (wanted != reading.plan.end() && *wanted == false) return std::nullopt;
  if (record.gain && record.gain->baseline < record.trials.size()) return record.gain->baseline;
  for (const Trial& trial : reading.trials) {
    const bool is_own = !reading.own.empty() && trial.identity == reading.own;
    if (is_own || trial.record.kind == TrialKind::baseline) return trial.record.duplicate_of.value_or(trial.id());
  }
  return std::nullopt;
}

// Returns the file's configuration with the batch sizes that follow from the file and from the command's flags.
// Contradictory sizes are not changed.
std::optional<Json> own_of_file(const StudyFacts& facts, const JournalReading& reading) {
  std::optional<Json> own = own_as_given(reading.plan, facts.record.study);
  if (!own) return own;
  const int64_t otherwise = integer_at(facts.record.study, "data_parallel_size").value_or(1);
  try {
    const Json command = reading.plan.value("command", Json::array());
    const Json mappings = reading.plan.value("arg_mappings", Json::array());
    const config::GivenBatchSizes given =
        with_batch_flags(command.get<Argv>(), reading.plan.value("hugging_face", Json()) == true,
                         mappings.get<ArgMappings>(), config::read_batch_sizes(*own));
    if (!given.micro_batch && !given.train_batch) return own;
    const config::BatchSizes sizes =
        config::complete_batch_sizes(given, config::data_parallel_size_of(*own, otherwise));
    config::write_batch_sizes(*own, sizes);
  } catch (const std::exception&) {  // a damaged plan, for example
  }
  return own;
}

void compare_with_own(StudyFacts& facts, const JournalReading& reading) {
  facts.baseline = baseline_of(reading, facts.record);
  facts.gain = facts.record.gain;
  facts.divergences = divergences(reading.trials);
  if (!facts.record.best) return;
  const std::string identity = facts.baseline ? reading.trials[*facts.baseline].identity : "";
  facts.end_to_end = end_to_end_of_best(reading.trials, identity, facts.record.best->trial);
  facts.check = check_of_best(reading.trials, reading.own, facts.record.best->trial,
                              reading.plan.value("twin", Json(true)) == true,
                              reading.plan.value("runner", std::string()) == "sim");
  if (!facts.gain && facts.baseline) {
    facts.gain = gain_over_own(reading.trials, facts.metric, facts.maximise, identity, facts.record.best->trial);
  }
  const std::optional<Json> own =
      facts.baseline ? facts.record.trials[*facts.baseline].config : own_of_file(facts, reading);
  facts.has_own = own.has_value();
  if (!own) return;
  facts.changes = changes_between(*own, facts.record.best->config);
  const auto before = integer_at(*own, config::kTrainBatchKey);
  const auto after = integer_at(facts.record.best->config, config::kTrainBatchKey);
  facts.changed_train_batch = before && after && *before != *after;
}

// Returns the precision that the command's flags give for "auto", as in the study.
std::string filled_in_precision(const Json& plan) {
  const Json filled_in = plan.value("hugging_face", Json()), command = plan.value("command", Json());
  return filled_in == true && command.is_array() ? precision_of_flags(command.get<Argv>()) : "";
}

void estimate_memory(StudyFacts& facts, const JournalReading& reading) {
  const int64_t data_parallel_size = integer_at(facts.record.study, "data_parallel_size").value_or(1);
  const MemoryEstimates estimates(
      {facts.record.profile, facts.device_memory_bytes, data_parallel_size, filled_in_precision(reading.plan)},
      reading.trials);
  for (const TrialRecord& record : facts.record.trials) {
    if (facts.trials[record.id].model_info) continue;
    if (const auto peak = estimates.peak(record.config)) {
      facts.trials[record.id].peak_estimate = Estimate{peak->value, peak->low, peak->high};
    }
  }
  facts.stages = stage_facts(facts, reading.trials, estimates);
}

StudyFacts facts_of(JournalReading reading) {
  StudyFacts facts;
  facts.record = std::move(reading.record);
  if (facts.record.best && facts.record.best->trial >= facts.record.trials.size()) facts.record.best.reset();
  const Json& study = facts.record.study;
  facts.metric = study.value("metric", std::string("FLOPS_per_gpu"));
  facts.maximise = study.value("direction", std::string("maximize")) != "minimize";
  const Time now = latest_moment(facts, reading.plan.value("runner", std::string()) == "sim");
  facts.trials = trial_facts(facts, reading.trials, now);
  reading.record.profile = facts.record.profile;  // used by device_memory
  facts.device_memory_bytes = device_memory(reading);
  facts.progress = progress_of(facts, now);
  facts.best_path = best_path(facts);
  compare_with_own(facts, reading);
  estimate_memory(facts, reading);
  facts.payback = payback_of(facts, reading.spent_device_hours);
  facts.knobs = knobs_of(facts);
  facts.plan = std::move(reading.plan);
  make_fit_to_pass_on(facts);
  return facts;
}

}  // namespace

const char* to_string(TrialPlace place) {
  constexpr const char* kNames[] = {"waiting", "running", "ended"};
  return kNames[static_cast<size_t>(place)];
}

std::vector<TrialFacts> trial_facts(const StudyFacts& facts, const std::vector<Trial>& trials, Time now) {
  const bool live = facts.record.status == StudyStatus::running;
  std::vector<TrialFacts> list;
  for (const Trial& trial : trials) {
    const TrialRecord& record = trial.record;
    TrialFacts one;
    one.phase = phase_name(trial.phase);
    one.place = place_of(trial, live);
    one.model_info = trial.model_info;
    one.devices = devices_in(record.slots);
    one.stage = static_cast<int>(integer_at(record.config, "zero_optimization.stage").value_or(0));
    one.micro_batch = integer_at(record.config, config::kMicroBatchKey);
    one.accumulation = integer_at(record.config, config::kAccumulationKey);
    one.train_batch = integer_at(record.config, config::kTrainBatchKey);
    if (!trial.model_info) one.value = metric_of(record, facts.metric);
    if (trial.end) add_end(one, *trial.end);
    const auto from = parse_rfc3339(record.started_at), to = parse_rfc3339(record.ended_at);
    if (from && (to || one.place == TrialPlace::running)) {
      const std::chrono::duration<double> took = to.value_or(now) - *from;
      one.run_seconds = std::max(0.0, took.count());
    }
    list.push_back(std::move(one));
  }
  return list;
}

Result<StudyFacts> read_study_facts(const std::filesystem::path& dir) {
  return as_result([&] { return facts_of(read_journal(dir)); });
}

}  // namespace dsat::host
