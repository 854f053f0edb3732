// A study as its journal records it: what `dsat-host show` prints and what observers receive.
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

enum class Outcome { completed, out_of_memory, failed, timed_out, invalid_config, stopped, lost };
enum class TrialKind { profile, search, repeat, baseline, duplicate };

const char* to_string(Outcome outcome);
const char* to_string(TrialKind kind);

struct TrialRecord {
  uint64_t id = 0;
  std::optional<uint64_t> parent;
  TrialKind kind = TrialKind::search;
  std::optional<uint64_t> duplicate_of;
  Json config;     // merged, without autotuning
  Json overrides;  // what the strategy asked for
  std::string note;
  std::optional<Outcome> outcome;  // nullopt: waiting or running
  std::string reason;              // one line
  Json metrics;                    // canonical, or null
  std::optional<uint64_t> peak_bytes;
  std::string peak_source;  // of peak_bytes: "metrics", "probe", "process" or "log"; empty: there is none
  std::optional<uint64_t> peak_above_bytes;  // out of memory: what was allocated and wanted then
  uint64_t allocator_retries = 0;            // 0: none, or unknown
  std::vector<std::string> slots;            // ids of the devices it ran on
  uint32_t attempt = 0;                      // 0: never started
  std::string submitted_at, started_at, ended_at;
  bool started() const { return attempt > 0; }
};

// The object that `show --json` has in its `trials`.
Json to_json(const TrialRecord& trial);

// How a study stands; `status` of --json.
enum class StudyStatus { running, completed, no_best, interrupted, failed };
const char* to_string(StudyStatus status);

struct BestRecord {
  uint64_t trial = 0;
  Json config;   // ready to train with: what best_ds_config.json holds
  Json metrics;  // canonical; the mean over the trials of this configuration
  double metric = 0;
  std::string why;  // empty, or why it is not the luckiest single measurement
};

// How much better the best is than the user's own configuration: the ratio of their metrics, turned so that above 1 is
// better. A measurement of each alone gives no interval.
struct Gain {
  double ratio = 1;
  std::optional<double> low, high;  // the 95 % interval
  uint64_t baseline = 0;            // the first trial that measured the user's own configuration
  // What it was made of: the geometric mean of the metric, and of how many measurements; 0: a journal of an older host.
  struct Side {
    double value = 0;
    int measurements = 0;
  };
  Side of_best{}, of_own{};
  int left_out = 0;  // measurements of the best that were made before its choice
};

// What one optimizer step of the best takes by the clock, and what the engine takes of it: DeepSpeed's metrics leave
// out what the script does between the engine's calls.
struct EndToEnd {
  double wall_us = 0, engine_us = 0;
  std::optional<double> ratio;  // of its samples a second by the clock to those of the user's own configuration
  // Clearly more than the engine's time: a comparison of engine times says little of the training.
  bool is_script_bound() const { return wall_us > 1.25 * engine_us && wall_us > engine_us + 2000; }
};

// `end_to_end` of --json and of `show --json`.
Json to_json(const EndToEnd& end_to_end);

// `gain` of --json and of `show --json`.
Json to_json(const Gain& gain);

// `best` of `show --json`, and of the journal.
Json to_json(const BestRecord& best);

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
// The same with an empty list of trials.
Json to_json_without_trials(const StudyRecord& record);

// Reads a run directory, live or ended, without changing it (it may lie on read-only media).
Result<StudyRecord> read_study(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_H_
