// A trial's folder: DIR/trials/<id>/. Names of its files, preparation, its lock and its copy of the model's folder.
//
// Threading: control thread. Errors: dsat::Error of the machine, naming the file.
#ifndef DSAT_HOST_RUNNER_TRIAL_FILES_H_
#define DSAT_HOST_RUNNER_TRIAL_FILES_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/classify.h"
#include "runner/runner.h"

namespace dsat::host {

inline constexpr const char* kConfigFile = "ds_config.json";
inline constexpr const char* kCommandFile = "cmd.txt";
inline constexpr const char* kStdoutFile = "stdout.log";
inline constexpr const char* kStderrFile = "stderr.log";
inline constexpr const char* kMetricsFile = "metrics.json";
inline constexpr const char* kModelInfoFile = "model_info.json";
inline constexpr const char* kExitFile = "exit.json";
inline constexpr const char* kDeepSpeedEnvFile = "deepspeed_env";      // of a trial on other hosts
inline constexpr const char* kHyperparametersFile = "hparams.json";    // of a study with an experiment file
inline constexpr const char* kFlopsReportFile = "flops_profiler.txt";  // where the configuration asks for one
inline constexpr const char* kCwdFolder = "cwd";                       // the copied folder, when trials run in one

std::filesystem::path trial_folder(const std::filesystem::path& run_dir, uint64_t id);

// Makes the folder, empty for this attempt; waits for processes of an earlier one. What an earlier attempt left moves
// to attempts/<number> in it, so that no file of it can be taken for this one's.
void prepare_folder(const std::filesystem::path& run_dir, const TrialSpec& spec);

// A file lock on cmd.txt. A trial's launcher holds it for as long as a process of the trial is alive, whichever host
// started it: the launcher inherits the descriptor, and this object closes only its own.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& trial_dir);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  int fd() const { return fd_; }  // -1: held by another, nothing was ever started here, or files cannot be locked
  bool is_held_by_other() const { return held_by_other_; }

 private:
  int fd_ = -1;
  bool held_by_other_ = false;
};

// Waits until no launcher holds it: after a host was killed its trials take a moment to end. false: they do not end.
bool wait_until_unlocked(const std::filesystem::path& trial_dir);

// exit.json: the facts that classify() needs and that no other file has. read_exit: nullopt when there is none, or it
// is another attempt's.
void write_exit(const RunFacts& facts, const TrialEnd& end);
std::optional<RunFacts> read_exit(const std::filesystem::path& trial_dir, const TrialSpec& spec);

// Something that changes whenever a file below the folder grows, appears or is written; cheap enough to ask often.
uint64_t progress_mark(const std::filesystem::path& trial_dir);

// The folder that a trial runs in when it does not run in the caller's: a copy of `model`, and of each of `includes`
// beside its files, without this or any other study's run directory and without what
// the folder's .detignore names (ignore_rules.h).
void copy_into(const std::filesystem::path& target, const std::filesystem::path& model,
               const std::vector<std::filesystem::path>& includes, const std::filesystem::path& run_dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_FILES_H_
