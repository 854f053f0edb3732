// What a study's journal tells, worked out for whoever shows it: the terminal, the page, exports.
//
// Purpose: one reading of the journal (running, ended, interrupted or killed study) in one consistent snapshot; nothing
//   in the run directory is changed, no plugin is loaded, no file of a trial is opened.
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

// An estimate with its 90 % interval; `high` is infinite where nothing bounds it.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

enum class TrialPlace { waiting, running, ended };
const char* to_string(TrialPlace place);

// What is known of a trial beside its record (StudyRecord::trials, same index).
struct TrialFacts {
  std::string phase;                       // profiler, baseline, searcher, finals, verification or comparison
  TrialPlace place = TrialPlace::waiting;  // running: only while the study's host lives
  bool model_info = false;                 // the model-information run, which measures no step
  int64_t devices = 0;                     // that it ran on; 0: it never ran
  int stage = 0;
  std::optional<int64_t> micro_batch, accumulation, train_batch;
  std::optional<double> value;            // of the study's metric
  std::optional<Estimate> peak_estimate;  // bytes of a device, by the memory model that all trials taught
  std::optional<double> run_seconds;      // from its start to its end, or to the last moment that the journal knows
  std::optional<int> exit_code, term_signal;
  std::vector<std::string> warnings, stderr_tail;
  std::string engine_version, torch_version;
};

struct StageFacts {
  int stage = 0;
  int trials = 0, out_of_memory = 0, failed = 0;  // of those that were started
  std::optional<uint64_t> best_trial;             // by the mean of its configuration
  std::optional<double> best_value;
  std::optional<Estimate> ceiling;  // largest micro batch that fits: of the best (else the last) configuration there
  std::optional<int64_t> largest_that_fitted, smallest_out_of_memory;
};

// A leaf that differs; null where one of the two does not set it.
struct ConfigChange {
  std::string key;
  Json own, best;
};

// The best so far at the end of a trial, trials in the order in which they ended.
struct BestStep {
  uint64_t trial = 0;
  double value = 0;
};

// Device time: what the search took, and what the best saves where it does the training that the user's own
// configuration does on the slots of one trial.
struct Payback {
  double spent_device_hours = 0;
  std::optional<double> saved_device_hours_per_day;  // nullopt: no gain is known; 0: the best is no faster
  std::optional<double> days;                        // of training until what was spent is saved
};

// How far the values of a key go together with the metric, over completed trials. It tells of association alone.
struct KnobValue {
  Json value;  // of numbers with many values: the text of a range
  int trials = 0;
  double mean = 0, best = 0;
};
struct Knob {
  std::string key;
  double share = 0;  // of the variance of the metric's logarithm, 0 to 1, less what chance would give
  std::vector<KnobValue> values;
};

struct Progress {
  int max_trials = 0, started = 0, running = 0, waiting = 0, ended = 0;
  std::string started_at, last_at;  // the first request and the latest moment in the journal; empty: none yet
  std::optional<double> elapsed_seconds, time_budget_seconds;
  std::optional<double> seconds_left;  // by the pace so far; nullopt: unknown, or the study has ended
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
  std::optional<Gain> gain;          // the record's; while the study runs, by what was measured so far
  std::string why_no_gain;           // the script ignores its configuration; empty: nothing speaks against a gain
  std::optional<EndToEnd> end_to_end;
  bool has_own = true;                // is there a configuration of the user's own? Not for a replayed trace
  std::vector<ConfigChange> changes;  // of the best against it
  bool changed_train_batch = false;   // the learning rate may want a change, too
  std::optional<uint64_t> device_memory_bytes;
  Payback payback;
  std::vector<Knob> knobs;  // the strongest first
  Json plan;                // the settings as resolved (docs/journal.md), without the values of variables
};

// Reads the journal and works the facts out. 10,000 trials take a fraction of a second.
Result<StudyFacts> read_study_facts(const std::filesystem::path& dir);

// The document of the page: `show --json` and, beside it, everything above (docs/report.md).
Json to_json(const StudyFacts& facts);
// The parts of that document: all of it with an empty list of trials, and the trial at an index. As a tree the whole
// document takes many times the memory of its text.
Json to_json_without_trials(const StudyFacts& facts);
Json trial_to_json(const StudyFacts& facts, size_t index);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_H_
