// Makes and empties run directories. Looks for dsat-launch beside this program, then where it was installed.
#include "study/results/run_dir.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/fault_point.h"
#include "base/installed.h"
#include "command/command_template.h"
#include "dsat/base/files.h"
#include "dsat/error.h"
#include "record/abandoned_start.h"
#include "record/plan_copy.h"
#include "runner/probe.h"
#include "study/results/best_command.h"
#include "variables/hyperparameters.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// Makes a folder for its owner alone, since commands and variables may hold secrets. False: the folder is there already
// and keeps its mode.
bool make_folder(const fs::path& dir) {
  std::error_code error;
  const fs::path parent = dir.parent_path();
  if (fs::create_directories(parent, error)) {  // whatever the umask is, or the next start would refuse it
    fs::permissions(parent, fs::perms::others_write, fs::perm_options::remove, error);
  }
  if (mkdir(dir.c_str(), S_IRWXU) == 0) return true;
  const int cause = errno;
  if (cause == EEXIST && fs::is_directory(dir, error)) return false;
  throw Error(fmt::format("output directory {}: {}; give another --output-dir", dir.string(), std::strerror(cause)));
}

// The lock decides who gets a folder that another start left without a study. nullopt: another study has it.
std::optional<RunLock> try_claim(const fs::path& dir, Trust trust) {
  if (!make_folder(dir) && !is_abandoned_start(dir)) return std::nullopt;
  fault_point("start.folder");
  std::optional<RunLock> lock = RunLock::take_if_free(dir, trust);
  std::error_code error;
  if (lock && fs::exists(dir / "dsat.db", error)) return std::nullopt;
  return lock;
}

}  // namespace

fs::path find_launcher(const fs::path& given) { return find_helper("dsat-launch", given, "or name it in the options"); }

RunLock claim_run_dir(Plan& plan, bool is_chosen, Trust trust) {
  if (!is_chosen) {
    refuse_folder_of_others(plan.dir, trust);
    make_folder(plan.dir);
    fault_point("start.folder");
    return RunLock::take(plan.dir, trust);
  }
  refuse_folder_of_others(plan.dir.parent_path(), trust);
  for (;; plan.dir = default_output_dir(plan)) {
    if (auto lock = try_claim(plan.dir, trust)) return std::move(*lock);
  }
}

void keep_given_hostfile(Plan& plan) {
  if (!plan.slots.hostfile_text) return;
  const fs::path file = plan.dir / kGivenHostfile;
  write_file_atomically(file, *plan.slots.hostfile_text, Durability::synced, Access::owner);
  plan.slots.hostfile = file;
  plan.slots.size_is_ours = true;  // the best command must name it, too
}

void delete_study(const fs::path& dir) {
  std::error_code error;
  for (const char* name : {"dsat.db",
                           kPlanCopyFile,
                           "dsat.db.new",
                           "dsat.db-wal",
                           "dsat.db-shm",
                           "dsat.db-journal",
                           "best_ds_config.json",
                           "best_ds_metrics.json",
                           kBestHyperparametersFile,
                           kBestAccelerateFile,
                           kBestHostfile,
                           kBestTrainFile,
                           kBestTrainJsonFile,
                           kGivenHostfile,
                           "best_cmd.txt",
                           "summary.txt",
                           "report.html",
                           "trials",
                           kProbeFolder,
                           kFullExperimentFolder}) {
    fs::remove_all(dir / name, error);
    if (error) throw Error(fmt::format("{}: cannot delete the earlier study: {}", dir.string(), error.message()));
  }
}

}  // namespace dsat::host
