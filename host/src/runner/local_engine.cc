// Starts dsat-launch in a trial's folder and signals it; its end is the end of the whole process tree.
#include "runner/local_engine.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runner/kernel_oom_count.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

// Makes dsat-launch kill everything now; SIGKILL to itself would leave the tree without its guard.
constexpr int kKillTree = SIGUSR1;

// A killed tree goes in milliseconds, unless a driver holds one of its processes.
constexpr std::chrono::seconds kLastWait{10};

}  // namespace

LocalEngine::LocalEngine(Loop& loop, std::filesystem::path launcher, const std::vector<Slot>& slots,
                         std::optional<int> max_slots)
    : loop_(loop), launcher_(std::move(launcher)), slots_(slots, max_slots) {}

LocalEngine::~LocalEngine() {
  for (auto& [id, trial] : running_) {
    loop_.cancel(trial.start_timer);
    trial.process->signal(kKillTree);
  }
  for (auto& [id, trial] : running_) trial.process->wait_for(kLastWait);
}

bool LocalEngine::has_room_for(const std::vector<TrialShape>& shapes) const {
  SlotPool left = slots_;
  return std::all_of(shapes.begin(), shapes.end(),
                     [&](const TrialShape& shape) { return left.take(shape).has_value(); });
}

void LocalEngine::launch(const Launch& launch) {
  SpawnOptions spawn;
  spawn.cwd = launch.cwd;
  spawn.argv = {launcher_.string(), fmt::to_string(getpid())};
  spawn.argv.insert(spawn.argv.end(), launch.argv.begin(), launch.argv.end());
  spawn.environment = launch.environment;
  spawn.stdout_file = launch.folder / kStdoutFile;
  spawn.stderr_file = launch.folder / kStderrFile;
  const FolderLock lock(launch.folder);  // the launcher inherits it
  spawn.keep_fd = lock.fd();
  Running trial;
  trial.oom_kills_before = count_oom_kills();
  const uint64_t id = launch.id;
  trial.process = Subprocess::spawn(loop_, spawn, [this, id](const ExitStatus& exit) { handle_exit(id, exit); });
  trial.start_timer = loop_.at(loop_.now(), [this, id] { on_running(id); });
  running_[id] = std::move(trial);
}

void LocalEngine::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it != running_.end()) it->second.process->signal(at_once ? kKillTree : SIGTERM);
}

bool LocalEngine::has_ended(uint64_t id) const {
  const auto it = running_.find(id);
  return it == running_.end() || it->second.process->has_ended();
}

void LocalEngine::handle_exit(uint64_t id, const ExitStatus& exit) {
  // Out of the map first: on_ended may start the next trial.
  const Running trial = std::move(running_.at(id));
  running_.erase(id);
  loop_.cancel(trial.start_timer);
  const auto oom_kills = count_oom_kills();
  EngineEnd end;
  end.exit = exit;
  end.kernel_oom_kills = oom_kills && trial.oom_kills_before && *oom_kills > *trial.oom_kills_before;
  on_ended(id, end);
}

}  // namespace dsat::host
