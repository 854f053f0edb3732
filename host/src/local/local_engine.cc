// Starts dsat-launch in a trial's folder and signals it. dsat-launch ends when the whole process tree has ended. If
// dsat-launch does not end a trial, it gets SIGCONT, then this engine kills the trial's processes, and at last the
// trial is abandoned.
#include "local/local_engine.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "dsat/host/environment.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

// Returns the number after `key` at the start of a line ("oom_kill 3").
std::optional<uint64_t> read_counter(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  std::string name;
  uint64_t value = 0;
  while (in >> name >> value) {
    if (name == key) return value;
  }
  return std::nullopt;
}

// Counts the processes that the kernel killed for lack of memory, in this process's cgroup (version 2 or 1) or, if the
// cgroup has no counter, on this machine. Only the count's increase has a meaning. nullopt: unknown here.
std::optional<uint64_t> count_oom_kills() {
  // Lines are "ID:CONTROLLERS:PATH". Version 2 has no controllers, version 1 has "memory" among them.
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    std::optional<uint64_t> kills;
    if (controllers.empty()) kills = read_counter("/sys/fs/cgroup" + path + "/memory.events", "oom_kill");
    if (controllers == "memory")
      kills = read_counter("/sys/fs/cgroup/memory" + path + "/memory.oom_control", "oom_kill");
    if (kills) return kills;
  }
  return read_counter("/proc/vmstat", "oom_kill");
}

// A killed tree ends in milliseconds, unless a driver holds one of its processes.
constexpr std::chrono::seconds kLastWait{2};

// The pauses between checks of killed processes, whose end makes no event here.
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
  // The mark is not in cmd.txt, because a person who runs that line starts no trial.
  set_variable(spawn.environment, kMarkVariable, trial_mark(launch.folder, launch.attempt));
  spawn.stdout_file = launch.folder / kStdoutFile;
  spawn.stderr_file = launch.folder / kStderrFile;
  const FolderLock lock(launch.folder);  // dsat-launch inherits the lock
  spawn.keep_fd = lock.fd();
  LocalTrial trial;
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

// A machine that has no process to spare has one again when other programs end.
void LocalEngine::try_later(const Launch& launch, const SpawnBusy& why, Time give_up_at) {
  constexpr std::chrono::milliseconds kPause{500};
  const uint64_t id = launch.id;
  LocalTrial& trial = running_[id];
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

// Checks at intervals whether dsat-launch was stopped, because nothing else would ever continue it.
void LocalEngine::watch(uint64_t id) {
  LocalTrial& trial = running_.at(id);
  if (trial.process == nullptr) return;
  trial.process->wake_if_stopped();
  trial.timer = loop_.at(loop_.now() + times_.look, [this, id] { watch(id); });
}

// Ends the trial on other hosts, which signals from this machine do not reach.
void LocalEngine::end_elsewhere(const LocalTrial& trial) {
  if (!trial.launch.end_command.empty()) background_.run(trial.launch.end_command, trial.launch.environment);
}

void LocalEngine::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  LocalTrial& trial = it->second;
  if (trial.process == nullptr) {  // the trial waits to be started, or is being ended by force
    if (trial.exit) return;
    loop_.cancel(trial.timer);
    trial.timer = loop_.at(loop_.now(), [this, id] { finish(id, ""); });
    return;
  }
  end_elsewhere(trial);
  if (at_once || trial.launch.end_command.empty()) trial.process->signal(at_once ? kKillTree : SIGTERM);
  trial.process->signal(SIGCONT);  // a stopped process handles no signals
  if (!at_once || trial.killing) return;
  trial.killing = true;
  loop_.cancel(trial.timer);
  trial.timer = loop_.at(loop_.now() + times_.kill_grace, [this, id] { end_by_force(id); });
}

// Kills the trial's processes again and again until none is left or the time limit is over.
void LocalEngine::end_by_force(uint64_t id) {
  LocalTrial& trial = running_.at(id);
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
  const LocalTrial& trial = it->second;
  return trial.process == nullptr ? trial.exit.has_value() : trial.process->has_ended();
}

void LocalEngine::handle_exit(uint64_t id, const ExitStatus& exit) {
  LocalTrial& trial = running_.at(id);
  trial.exit = exit;
  trial.process.reset();
  loop_.cancel(trial.timer);
  // If dsat-launch exits, the tree has ended. If a signal ended it, the tree may still run.
  if (exit.signal == 0) return finish(id, "");
  end_by_force(id);
}

// `abandoned`: the processes that are left; empty: none.
void LocalEngine::finish(uint64_t id, std::string abandoned) {
  // The trial leaves the map first, because on_ended may start the next trial.
  LocalTrial trial = std::move(running_.at(id));
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

// Gives the slots back when the kernel has at last ended the processes.
void LocalEngine::await_abandoned(uint64_t number) {
  LocalTrial& trial = abandoned_.at(number);
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
