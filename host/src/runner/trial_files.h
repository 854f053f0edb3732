// A trial's folder, DIR/trials/<id>/: the names of its files, its preparation, its lock, and its copy of the model
// folder.
// Threading: control thread. Errors: dsat::Error of the machine, naming the file.
#ifndef DSAT_HOST_RUNNER_TRIAL_FILES_H_
#define DSAT_HOST_RUNNER_TRIAL_FILES_H_

#include <filesystem>
#include <optional>
#include <vector>

#include "runner/run_facts.h"
#include "runner/runner.h"

namespace dsat::host {

inline constexpr const char* kConfigFile = "ds_config.json";
inline constexpr const char* kCommandFile = "cmd.txt";
inline constexpr const char* kStdoutFile = "stdout.log";
inline constexpr const char* kStderrFile = "stderr.log";
inline constexpr const char* kMetricsFile = "metrics.json";
inline constexpr const char* kModelInfoFile = "model_info.json";
inline constexpr const char* kExitFile = "exit.json";
inline constexpr const char* kDeepSpeedEnvFile = "deepspeed_env";      // for a trial on other hosts
inline constexpr const char* kHyperparametersFile = "hparams.json";    // for a study with an experiment file
inline constexpr const char* kFlopsReportFile = "flops_profiler.txt";  // if the configuration asks for this report
inline constexpr const char* kCwdFolder = "cwd";                       // the copied folder, if trials run in a copy

std::filesystem::path trial_folder(const std::filesystem::path& run_dir, uint64_t id);

// Makes the folder, empty for this attempt; waits for processes of an earlier attempt. Files of an earlier attempt move
// to attempts/<number> in it, so they cannot be mistaken for this attempt's.
void prepare_folder(const std::filesystem::path& run_dir, const TrialSpec& spec);

// A file lock on cmd.txt. The trial's dsat-launch inherits the descriptor, so the lock is held while a process of the
// trial is alive, even if its host has died. This object closes only its own descriptor.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& trial_dir);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // -1: another process has the lock, cmd.txt is missing, or the file system has no locks.
  int fd() const { return fd_; }
  bool is_held_by_other() const { return held_by_other_; }

 private:
  int fd_ = -1;
  bool held_by_other_ = false;
};

// Waits until no launcher holds the lock, since trials of a killed host take a moment to end. Returns false if they do
// not end.
bool wait_until_unlocked(const std::filesystem::path& trial_dir);

// exit.json holds the facts that classify() needs and that no other file has. read_exit returns nullopt if the file is
// missing or belongs to another attempt.
void write_exit(const RunFacts& facts, const TrialEnd& end);
std::optional<RunFacts> read_exit(const std::filesystem::path& trial_dir, const TrialSpec& spec);

// Returns a value that changes whenever a file below the folder grows, appears or is written; cheap enough to call
// often.
uint64_t progress_mark(const std::filesystem::path& trial_dir);

// Copies `model`, and each of `includes`, into the folder where a trial runs. Leaves out all run directories of studies
// and what the folder's .detignore names (ignore_rules.h).
void copy_into(const std::filesystem::path& target, const std::filesystem::path& model,
               const std::vector<std::filesystem::path>& includes, const std::filesystem::path& run_dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_FILES_H_
