// The record of a study in its journal, which `dsat-host show` prints and observers receive.
//
// Threading: plain values. Units: bytes, microseconds, samples a second, FLOP/s; times are RFC 3339 UTC with exactly
// six fractional digits.
#ifndef DSAT_HOST_RECORD_H_
#define DSAT_HOST_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/status.h"

namespace dsat::host {

enum class Outcome { completed, out_of_memory, failed, timed_out, invalid_config, stopped, lost, diverged };
enum class TrialKind { profile, search, repeat, baseline, duplicate };

const char* to_string(Outcome outcome);
const char* to_string(TrialKind kind);

// The loss and the gradient norm of a trial's optimizer steps, from the first one on (docs/guard.md). nullopt: nothing
// was reported of a step. Values may be NaN or infinite.
struct Curve {
  std::vector<std::optional<double>> losses, grad_norms;

  bool empty() const { return losses.empty() && grad_norms.empty(); }
};

// {"losses", "grad_norms"}, lists of numbers, "nan", "inf", "-inf" and null; null if the curve is empty.
Json to_json(const Curve& curve);

struct TrialRecord {
  uint64_t id = 0;
  std::optional<uint64_t> parent;
  TrialKind kind = TrialKind::search;
  std::optional<uint64_t> duplicate_of;
  Json config;     // merged, without autotuning
  Json overrides;  // the keys that the strategy set
  std::string note;
  std::optional<Outcome> outcome;  // nullopt: waiting or running
  std::string reason;              // one line
  Json metrics;                    // canonical, or null
  Curve curve;                     // empty: nothing was reported
  std::optional<uint64_t> peak_bytes;
  std::string peak_source;                   // of peak_bytes: "metrics", "probe", "process" or "log"; empty: no peak
  std::optional<uint64_t> peak_above_bytes;  // out of memory: the bytes allocated and requested at that moment
  uint64_t allocator_retries = 0;            // 0: none, or unknown
  std::vector<std::string> slots;            // ids of its devices
  uint32_t attempt = 0;                      // 0: never started
  std::string submitted_at, started_at, ended_at;
  bool started() const { return attempt > 0; }
};

// An element of `trials` in `show --json`.
Json to_json(const TrialRecord& trial);

// The status of a study; `status` of --json.
enum class StudyStatus { running, completed, no_best, interrupted, failed };
const char* to_string(StudyStatus status);

struct BestRecord {
  uint64_t trial = 0;
  Json config;   // the contents of best_ds_config.json
  Json metrics;  // canonical; the mean over the trials of this configuration
  double metric = 0;
  std::string why;  // why the best single measurement was not chosen; empty: it was
};

// The gain of the best over the user's own configuration: the ratio of their metrics, inverted where smaller is better,
// so that above 1 is better. One measurement of each gives no interval.
struct Gain {
  double ratio = 1;
  std::optional<double> low, high;  // the 95 % interval
  uint64_t baseline = 0;            // the first trial that measured the user's own configuration
  // The geometric mean of the metric over a number of measurements.
  struct Side {
    double value = 0;
    int measurements = 0;
  };
  Side of_best{}, of_own{};
  int left_out = 0;  // measurements of the best that were made before its choice
};

// The wall time of one optimizer step of the best configuration, and the engine's share of it. DeepSpeed's metrics
// leave out the time of the script between the engine's calls.
struct EndToEnd {
  double wall_us = 0, engine_us = 0;
  std::optional<double> ratio;  // of its samples per second of wall time to those of the user's own configuration
  // True: the wall time is clearly longer than the engine's, so engine times say little about the training.
  bool is_script_bound() const { return wall_us > 1.25 * engine_us && wall_us > engine_us + 2000; }
};

// `end_to_end` of --json and of `show --json`.
Json to_json(const EndToEnd& end_to_end);

// `gain` of --json and of `show --json`.
Json to_json(const Gain& gain);

// `best` of `show --json`, and of the journal.
Json to_json(const BestRecord& best);

// Whether the best learns what the user's own configuration learns (docs/guard.md).
struct TwinCheck {
  // own: the best is the user's own, or differs in its batch alone.
  enum class State { agrees, own, unchecked };
  State state = State::unchecked;
  std::optional<uint64_t> twin;  // the trial that shows it
  std::string text;              // what was compared, or why nothing was
};

// `check` of --json and of `show --json`: {"state", "twin", "text"}.
Json to_json(const TwinCheck& check);

struct StudyRecord {
  std::filesystem::path dir;
  StudyStatus status = StudyStatus::running;
  std::string reason;
  Json study;    // settings and limits: {name, metric, direction, command, searcher, profiler, seed, ...}
  Json profile;  // or null
  std::optional<BestRecord> best;
  std::optional<Gain> gain;  // once the study has ended
  std::vector<TrialRecord> trials;
  std::map<Outcome, int> counts() const;
  int started() const;  // counted against the trial limit
};

// `show DIR --json`.
Json to_json(const StudyRecord& record);
// As above, with an empty list of trials.
Json to_json_without_trials(const StudyRecord& record);

// Reads the run directory of a running or ended study without changing it; it may be on read-only media.
Result<StudyRecord> read_study(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_H_
