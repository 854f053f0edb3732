// Files of an earlier attempt are moved to another folder, never deleted.
#include "runner/trial_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/guarded.h"
#include "dsat/base/files.h"
#include "dsat/config/json_numbers.h"
#include "runner/ignore_rules.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAttemptsFolder = "attempts";
constexpr const char* kNamedAttempts = "attempts~";  // for a file of the trial that has that name

// Throws filesystem_error.
void move_earlier_attempt(const fs::path& folder, uint32_t attempt) {
  const auto found = fs::symlink_status(folder / kAttemptsFolder);
  if (fs::exists(found) && !fs::is_directory(found)) fs::rename(folder / kAttemptsFolder, folder / kNamedAttempts);
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != kAttemptsFolder) left.push_back(entry.path());
  }
  if (left.empty()) return;
  uint32_t number = attempt - 1;
  while (fs::exists(folder / kAttemptsFolder / fmt::to_string(number))) ++number;
  const fs::path target = folder / kAttemptsFolder / fmt::to_string(number);
  fs::create_directories(target);
  for (const fs::path& path : left) fs::rename(path, target / path.filename());
}

// Copies a folder tree without the results of studies and without what its .detignore names.
class TreeCopy {
 public:
  TreeCopy(fs::path root, const fs::path& run_dir)
      : root_(fs::absolute(root).lexically_normal()),
        run_dir_(run_dir),
        ignored_(try_read_file(root_ / kIgnoreFile).bytes) {}

  // Throws filesystem_error.
  void to(const fs::path& target) const { copy(root_, target); }

 private:
  void copy(const fs::path& source, const fs::path& target) const {
    fs::create_directories(target);
    bool only_results = false;
    for (const auto& entry : fs::directory_iterator(source)) {
      try {
        only_results |= !copy_entry(entry, target / entry.path().filename());
      } catch (const fs::filesystem_error&) {
        // Scripts and editors make and remove files during the copy. A file that is gone does not belong to the model.
        if (fs::exists(entry.symlink_status())) throw;
      }
    }
    // This is dsat-results/ itself.
    if (only_results && source != root_ && fs::is_empty(target)) fs::remove(target);
  }

  // Returns false for a folder of results.
  bool copy_entry(const fs::directory_entry& entry, const fs::path& to) const {
    const bool folder = entry.is_directory() && !entry.is_symlink();
    if (ignored_.ignores(entry.path().lexically_relative(root_), folder)) return true;
    if (entry.is_symlink()) {
      copy_link(entry.path(), to);
    } else if (folder) {
      if (holds_results(entry.path())) return false;
      copy(entry.path(), to);
    } else if (entry.is_regular_file()) {
      fs::copy_file(entry.path(), to, fs::copy_options::overwrite_existing);
    }
    return true;
  }

  bool holds_results(const fs::path& folder) const {
    return fs::exists(folder / "dsat.db") || (fs::exists(run_dir_) && fs::equivalent(folder, run_dir_));
  }

  // A relative link that leads out of the tree ("../data") would lead elsewhere from the copy.
  void copy_link(const fs::path& link, const fs::path& to) const {
    fs::path leads_to = fs::read_symlink(link);
    const fs::path meant = (link.parent_path() / leads_to).lexically_normal();
    const bool leaves = *meant.lexically_relative(root_).begin() == "..";
    if (leads_to.is_relative() && leaves) leads_to = meant;
    fs::create_symlink(leads_to, to);
  }

  fs::path root_;
  const fs::path& run_dir_;
  const IgnoreRules ignored_;
};

void mix(uint64_t& mark, uint64_t value) { mark = (mark ^ value) * 0x100000001B3u; }

}  // namespace

fs::path trial_folder(const fs::path& run_dir, uint64_t id) { return run_dir / "trials" / fmt::to_string(id); }

void prepare_folder(const fs::path& run_dir, const TrialSpec& spec) {
  const fs::path folder = trial_folder(run_dir, spec.id);
  if (!wait_until_unlocked(folder)) {
    throw internal_error(
        fmt::format("processes of an earlier run of trial {} are still alive: end them, then go on", spec.id));
  }
  try {
    // Removes what an earlier attempt put in the place of its folder, without following a link.
    if (const auto found = fs::symlink_status(folder); fs::exists(found) && !fs::is_directory(found))
      fs::remove(folder);
    fs::create_directories(folder);
    fs::permissions(folder, fs::perms::owner_all);  // arguments and environments may hold secrets
    move_earlier_attempt(folder, spec.attempt);
  } catch (const fs::filesystem_error& error) {
    throw file_error(error, "prepare the trial's folder");
  }
}

FolderLock::FolderLock(const fs::path& trial_dir)
    : fd_(open((trial_dir / kCommandFile).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  held_by_other_ = errno == EWOULDBLOCK;
  close(fd_);
  fd_ = -1;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

bool wait_until_unlocked(const fs::path& trial_dir) {
  constexpr std::chrono::milliseconds kPause{5};
  constexpr int kTries = 2000;  // ten seconds, since a device driver may delay the end of a killed process
  for (int i = 0; i < kTries; ++i) {
    if (!FolderLock(trial_dir).is_held_by_other()) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

// The file is not synced: after a power loss the trial runs again, and completed trials are in the journal.
void write_exit(const RunFacts& facts, const TrialEnd& end) {
  const auto number = [](int value, bool there) { return there ? Json(value) : Json(); };
  const Json json{{"trial", facts.id},
                  {"attempt", facts.attempt},
                  {"outcome", to_string(end.outcome)},
                  {"reason", end.reason},
                  {"exit_code", number(facts.exit.code, facts.exit.code >= 0)},
                  {"signal", number(facts.exit.signal, facts.exit.signal != 0)},
                  {"timed_out", facts.timed_out},
                  {"stopped", facts.stopped},
                  {"kernel_oom_kills", facts.kernel_oom_kills},
                  {"started_at", facts.started_at},
                  {"ended_at", facts.ended_at}};
  write_file_atomically(facts.trial_dir / kExitFile, config::text_of(json, 2) + "\n", Durability::renamed);
}

std::optional<RunFacts> read_exit(const fs::path& trial_dir, const TrialSpec& spec) {
  constexpr size_t kMaxExitBytes = 64 * 1024;
  const FileText text = try_read_file(trial_dir / kExitFile, kMaxExitBytes);
  if (!text.ok()) return std::nullopt;
  try {
    const Json json = config::parse(text.bytes, kExitFile);
    if (json.at("trial") != spec.id || json.at("attempt") != spec.attempt) return std::nullopt;
    RunFacts facts;
    facts.exit.code = config::whole_number_at<int>(json, "exit_code").value_or(-1);
    facts.exit.signal = config::whole_number_at<int>(json, "signal").value_or(0);
    facts.timed_out = json.at("timed_out").get<std::string>();
    facts.stopped = json.at("stopped").get<bool>();
    facts.kernel_oom_kills = json.at("kernel_oom_kills").get<bool>();
    facts.started_at = json.at("started_at").get<std::string>();
    facts.ended_at = json.at("ended_at").get<std::string>();
    facts.seen_outcome = json.at("outcome").get<std::string>();
    return facts;
  } catch (const std::exception&) {
    return std::nullopt;  // written by another version, or damaged; the other files have to be enough
  }
}

// The folder may hold a whole source tree. Files that change are near its top, so the top comes first.
uint64_t progress_mark(const fs::path& trial_dir) {
  constexpr int kMaxFiles = 10000, kDeepest = 16;
  uint64_t mark = 0xCBF29CE484222325u;
  int files = 0;
  std::vector<fs::path> level{trial_dir}, next;
  for (int depth = 0; depth <= kDeepest && !level.empty(); ++depth, level.swap(next), next.clear()) {
    for (const fs::path& folder : level) {
      std::error_code error;
      for (fs::directory_iterator it(folder, error), end; !error && it != end && files < kMaxFiles;
           it.increment(error), ++files) {
        struct stat status {};
        if (lstat(it->path().c_str(), &status) != 0) continue;
        mix(mark, static_cast<uint64_t>(status.st_size));
        mix(mark, static_cast<uint64_t>(status.st_mtim.tv_sec));
        mix(mark, static_cast<uint64_t>(status.st_mtim.tv_nsec));
        if (S_ISDIR(status.st_mode)) next.push_back(it->path());
      }
    }
  }
  mix(mark, static_cast<uint64_t>(files));
  return mark;
}

void copy_into(const fs::path& target, const fs::path& model, const std::vector<fs::path>& includes,
               const fs::path& run_dir) {
  try {
    TreeCopy(model, run_dir).to(target);
    for (const fs::path& include : includes) {
      const fs::path to = target / (include.has_filename() ? include : include.parent_path()).filename();
      if (fs::exists(to)) continue;  // the model has a file of this name
      if (fs::is_directory(include)) {
        TreeCopy(include, run_dir).to(to);
      } else {
        fs::copy_file(include, to, fs::copy_options::overwrite_existing);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw file_error(error, "copy the model folder for a trial");
  }
}

}  // namespace dsat::host
