// Starts dsat-launch in a trial's folder and signals it; its end is the end of the whole process tree.
// Three steps end a trial whose dsat-launch does not: it is continued, then everything that belongs to the trial is
// killed from here, then the trial is abandoned.
#include "runner/local_engine.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dsat/host/environment.h"
#include "runner/kernel_oom_count.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

// A killed tree goes in milliseconds, unless a driver holds one of its processes.
constexpr std::chrono::seconds kLastWait{2};

// Between looks at processes that were killed: their end makes no event here.
constexpr std::chrono::milliseconds kSweep{20}, kSlowSweep{1000};

}  // namespace

LocalEngine::LocalEngine(Loop& loop, std::filesystem::path launcher, const std::vector<Slot>& slots,
                         std::optional<int> max_slots, LocalEngineTimes times)
    : loop_(loop), launcher_(std::move(launcher)), slots_(slots, max_slots), times_(times) {}

LocalEngine::~LocalEngine() {
  for (auto& [id, trial] : running_) {
    loop_.cancel(trial.timer);
    if (trial.process == nullptr) continue;
    end_elsewhere(trial);
    trial.process->signal(kKillTree);
    trial.process->signal(SIGCONT);
  }
  for (auto& [id, trial] : running_) {
    const bool ended = trial.process == nullptr || trial.process->wait_for(kLastWait);
    if (!ended || trial.exit) trial.processes.end_all(kLastWait);
    if (!ended && !trial.process->wait_for(kLastWait)) trial.process->forget();
  }
  for (auto& [number, trial] : abandoned_) loop_.cancel(trial.timer);
}

bool LocalEngine::has_room_for(const std::vector<TrialShape>& shapes) const {
  SlotPool left = slots_;
  return std::all_of(shapes.begin(), shapes.end(),
                     [&](const TrialShape& shape) { return left.take(shape).has_value(); });
}

void LocalEngine::launch(const Launch& launch) { spawn(launch, loop_.now() + times_.spawn_limit); }

void LocalEngine::spawn(const Launch& launch, Time give_up_at) {
  SpawnOptions spawn;
  spawn.cwd = launch.cwd;
  spawn.argv = {launcher_.string(), fmt::to_string(getpid())};
  spawn.argv.insert(spawn.argv.end(), launch.argv.begin(), launch.argv.end());
  spawn.environment = launch.environment;
  // Not in cmd.txt: who runs that line again runs no trial.
  set_variable(spawn.environment, kMarkVariable, trial_mark(launch.folder, launch.attempt));
  spawn.stdout_file = launch.folder / kStdoutFile;
  spawn.stderr_file = launch.folder / kStderrFile;
  const FolderLock lock(launch.folder);  // the launcher inherits it
  spawn.keep_fd = lock.fd();
  Running trial;
  trial.launch = launch;
  trial.oom_kills_before = count_oom_kills();
  const uint64_t id = launch.id;
  try {
    trial.process = Subprocess::spawn(loop_, spawn, [this, id](const ExitStatus& exit) { handle_exit(id, exit); });
  } catch (const SpawnBusy& busy) {
    return try_later(launch, busy, give_up_at);
  }
  trial.processes = TrialProcesses(launch.folder, launch.attempt, trial.process->pid());
  trial.timer = loop_.at(loop_.now(), [this, id] {
    watch(id);
    on_running(id);
  });
  running_[id] = std::move(trial);
}

// A machine that is short of processes has some again when other programs end.
void LocalEngine::try_later(const Launch& launch, const SpawnBusy& why, Time give_up_at) {
  constexpr std::chrono::milliseconds kPause{500};
  const uint64_t id = launch.id;
  Running& trial = running_[id];
  trial.launch = launch;
  if (loop_.now() < give_up_at) {
    trial.timer = loop_.at(loop_.now() + kPause, [this, launch, give_up_at] {
      try {
        spawn(launch, give_up_at);
      } catch (const Error& error) {
        give_up(launch.id, error.what());
      }
    });
    return;
  }
  give_up(id, fmt::format("{} (tried for {:.0f} s: end other programs, or raise ulimit -u)", why.what(),
                          std::chrono::duration<double>(times_.spawn_limit).count()));
}

void LocalEngine::give_up(uint64_t id, const std::string& problem) {
  running_[id].timer = loop_.at(loop_.now(), [this, id, problem] {
    running_.erase(id);
    EngineEnd end;
    end.not_started = problem;
    on_ended(id, end);
  });
}

// Looks from time to time whether dsat-launch was stopped: nothing else would ever wake it.
void LocalEngine::watch(uint64_t id) {
  Running& trial = running_.at(id);
  if (trial.process == nullptr) return;
  trial.process->wake_if_stopped();
  trial.timer = loop_.at(loop_.now() + times_.look, [this, id] { watch(id); });
}

// On other hosts, where this machine's signals do not reach.
void LocalEngine::end_elsewhere(const Running& trial) {
  if (!trial.launch.end_command.empty()) aside_.run(trial.launch.end_command, trial.launch.environment);
}

void LocalEngine::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  Running& trial = it->second;
  if (trial.process == nullptr) {  // waits for a process to spare, or is being ended by force
    if (trial.exit) return;
    loop_.cancel(trial.timer);
    trial.timer = loop_.at(loop_.now(), [this, id] { finish(id, ""); });
    return;
  }
  end_elsewhere(trial);
  if (at_once || trial.launch.end_command.empty()) trial.process->signal(at_once ? kKillTree : SIGTERM);
  trial.process->signal(SIGCONT);  // a stopped process handles no signal
  if (!at_once || trial.killing) return;
  trial.killing = true;
  loop_.cancel(trial.timer);
  trial.timer = loop_.at(loop_.now() + times_.kill_grace, [this, id] { end_by_force(id); });
}

// Kills everything that belongs to the trial, again and again until nothing does, or until its time is over.
void LocalEngine::end_by_force(uint64_t id) {
  Running& trial = running_.at(id);
  const Time now = loop_.now();
  if (!trial.killed_at) trial.killed_at = now;
  const std::vector<pid_t> left = trial.processes.kill_all();
  if (left.empty() && trial.process == nullptr) return finish(id, "");
  if (now - *trial.killed_at >= times_.abandon) return finish(id, describe_processes(left));
  trial.timer = loop_.at(now + kSweep, [this, id] { end_by_force(id); });
}

bool LocalEngine::has_ended(uint64_t id) const {
  const auto it = running_.find(id);
  if (it == running_.end()) return true;
  const Running& trial = it->second;
  return trial.process == nullptr ? trial.exit.has_value() : trial.process->has_ended();
}

void LocalEngine::handle_exit(uint64_t id, const ExitStatus& exit) {
  Running& trial = running_.at(id);
  trial.exit = exit;
  trial.process.reset();
  loop_.cancel(trial.timer);
  // Its own end by itself is the tree's. One that died by a signal may be dsat-launch itself that was killed.
  if (exit.signal == 0) return finish(id, "");
  end_by_force(id);
}

// `abandoned`: the processes that are left; empty: none.
void LocalEngine::finish(uint64_t id, std::string abandoned) {
  // Out of the map first: on_ended may start the next trial.
  Running trial = std::move(running_.at(id));
  running_.erase(id);
  loop_.cancel(trial.timer);
  const auto oom_kills = count_oom_kills();
  EngineEnd end;
  end.exit = trial.exit.value_or(ExitStatus{});
  end.kernel_oom_kills = oom_kills && trial.oom_kills_before && *oom_kills > *trial.oom_kills_before;
  end.abandoned = std::move(abandoned);
  if (!end.abandoned.empty()) {
    if (trial.process != nullptr) trial.process->forget();
    const uint64_t number = next_abandoned_++;
    abandoned_[number] = std::move(trial);
    await_abandoned(number);
  }
  on_ended(id, end);
}

// Gives the slots back when the kernel has let the processes go after all.
void LocalEngine::await_abandoned(uint64_t number) {
  Running& trial = abandoned_.at(number);
  const bool launcher_ended = trial.process == nullptr || trial.process->wait_for(std::chrono::milliseconds(0));
  if (trial.processes.kill_all().empty() && launcher_ended) {
    slots_.give_back(trial.launch.slots);
    abandoned_.erase(number);
    loop_.wake();
    return;
  }
  trial.timer = loop_.at(loop_.now() + kSlowSweep, [this, number] { await_abandoned(number); });
}

}  // namespace dsat::host
