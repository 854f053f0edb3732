// The facts of a study, computed from its journal for the terminal, the page and exports.
//
// Purpose: reads the journal of a running, ended, interrupted or killed study in one consistent snapshot. Nothing in
//   the run directory is changed, no plugin is loaded, and no file of a trial is opened.
// Threading: plain values; read_study_facts from any thread. Units: bytes, seconds, the metric's own; times are
//   RFC 3339 UTC. Errors: Result, one line that names the file.
#ifndef DSAT_HOST_FACTS_H_
#define DSAT_HOST_FACTS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"

namespace dsat::host {

// An estimate with its 90 % interval; `high` is infinite if nothing bounds it.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

enum class TrialPlace { waiting, running, ended };
const char* to_string(TrialPlace place);

// The facts of a trial beside its record (StudyRecord::trials, same index).
struct TrialFacts {
  std::string phase;                       // profiler, baseline, searcher, finals, verification or comparison
  TrialPlace place = TrialPlace::waiting;  // running only while the study's host lives
  bool model_info = false;                 // the model-information run, which measures no step
  int64_t devices = 0;                     // number of devices; 0: the trial never ran
  int stage = 0;
  std::optional<int64_t> micro_batch, accumulation, train_batch;
  std::optional<double> value;            // of the study's metric
  std::optional<Estimate> peak_estimate;  // bytes of a device, by the memory model fitted to all trials
  std::optional<double> run_seconds;      // from the start to the end or, while it runs, to the latest moment
  std::optional<int> exit_code, term_signal;
  std::vector<std::string> warnings, stderr_tail;
  std::string engine_version, torch_version, driver_version;
  std::string checkpoint_outside;  // folder outside the trial's in which it saved a checkpoint; empty: none
};

struct StageFacts {
  int stage = 0;
  int trials = 0, out_of_memory = 0, failed = 0;  // of the trials that were started
  std::optional<uint64_t> best_trial;             // the trial whose configuration has the best mean
  std::optional<double> best_value;
  std::optional<Estimate> ceiling;  // maximum micro batch of the best configuration, else of the last one
  std::optional<int64_t> largest_that_fitted, smallest_out_of_memory;
};

// A leaf that differs between the two configurations; null: this configuration does not set it.
struct ConfigChange {
  std::string key;
  Json own, best;
};

// A trial that was the best so far when it ended.
struct BestStep {
  uint64_t trial = 0;
  double value = 0;
};

// The device time that the search took, and the device time that the best configuration saves for the same training.
// The user's own configuration is taken to train on the slots of one trial.
struct Payback {
  double spent_device_hours = 0;
  std::optional<double> saved_device_hours_per_day;  // nullopt: the gain is unknown; 0: the best is not faster
  std::optional<double> days;                        // of training until the saving equals the search's time
};

// The association of a key's values with the metric, over completed trials. An association is no proof of a cause.
struct KnobValue {
  Json value;  // for a key with many numbers the text of a range
  int trials = 0;
  double mean = 0, best = 0;
};
struct Knob {
  std::string key;
  double share = 0;  // of the variance of the metric's logarithm, 0 to 1, minus the share that chance gives
  std::vector<KnobValue> values;
};

struct Progress {
  int max_trials = 0, started = 0, running = 0, waiting = 0, ended = 0;
  std::string started_at, last_at;  // times of the first request and of the latest moment; empty: none yet
  std::optional<double> elapsed_seconds, time_budget_seconds;
  std::optional<double> seconds_left;  // estimated by the pace so far; nullopt: unknown, or the study has ended
};

struct StudyFacts {
  StudyRecord record;
  std::vector<TrialFacts> trials;
  std::string metric;
  bool maximise = true;
  Progress progress;
  std::vector<StageFacts> stages;  // ascending
  std::vector<BestStep> best_path;
  std::optional<uint64_t> baseline;  // the first trial of the user's own configuration
  std::optional<Gain> gain;          // the record's; while the study runs, from the measurements so far
  std::optional<EndToEnd> end_to_end;
  std::optional<TwinCheck> check;          // of the best
  std::vector<std::string> divergences{};  // a line for each twin that has diverged
  bool has_own = true;                // false: a replayed trace has no configuration of the user's own
  std::vector<ConfigChange> changes;  // from the user's own configuration to the best
  bool changed_train_batch = false;   // the learning rate may need a change, too
  std::optional<uint64_t> device_memory_bytes;
  Payback payback;
  std::vector<Knob> knobs;  // the strongest first
  Json plan;                // the resolved settings (docs/journal.md), without the values of variables
};

// Reads the journal and computes the facts. What looks like a secret is masked in all of them, because they are passed
// on: pages, JSON, exports. 10,000 trials take a fraction of a second.
Result<StudyFacts> read_study_facts(const std::filesystem::path& dir);

// The document of the page: the members of `show --json` and all facts (docs/report.md).
Json to_json(const StudyFacts& facts);
// The parts of that document: the document with an empty list of trials, and the trial at an index. The tree of the
// whole document takes many times the memory of its text.
Json to_json_without_trials(const StudyFacts& facts);
Json trial_to_json(const StudyFacts& facts, size_t index);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_H_
