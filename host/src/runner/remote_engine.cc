// Starts clients below dsat-launch, reads from a pipe when a script starts, and reads the note of its end after the
// client has ended.
#include "runner/remote_engine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/files.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

constexpr std::chrono::seconds kLastWaitForClients{10};
constexpr std::chrono::milliseconds kLookAgain{50}, kStartInterval{200};
constexpr std::chrono::seconds kClientPatience{5};
constexpr size_t kLongestNote = 16 * 1024;

}  // namespace

RemoteEngine::RemoteEngine(Loop& loop, RemoteEngineOptions options)
    : loop_(loop), options_(std::move(options)), slots_(options_.slots, options_.max_slots) {}

RemoteEngine::~RemoteEngine() {
  for (auto& [id, trial] : running_) {
    loop_.cancel(trial.timer);
    close_pipe(trial);
    if (trial.client) trial.client->signal(kKillTree);
  }
  for (auto& [id, trial] : running_) {
    if (trial.client) trial.client->wait_for(kLastWaitForClients);
  }
}

bool RemoteEngine::has_room_for(const std::vector<TrialShape>& shapes) const {
  SlotPool left = slots_;
  return std::all_of(shapes.begin(), shapes.end(),
                     [&](const TrialShape& shape) { return left.take(shape).has_value(); });
}

void RemoteEngine::launch(const Launch& launch) {
  write_script(launch);
  RemoteTrial& trial = running_[launch.id];
  trial.launch = launch;
  try {
    start_client(trial);
  } catch (...) {
    running_.erase(launch.id);
    throw;
  }
}

// A host that died took its clients with it, but perhaps not their scripts.
bool RemoteEngine::adopt(const Launch& launch) {
  const auto note = read_note(launch.folder, kStartedFile, launch.attempt);
  if (note && !read_note(launch.folder, kEndedFile, launch.attempt)) signal_script(launch, *note, true);
  return false;
}

void RemoteEngine::start_client(RemoteTrial& trial) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) {
    throw internal_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  fcntl(pipe[0], F_SETFL, O_NONBLOCK);  // only our end: the writer's end must block
  const uint64_t id = trial.launch.id;
  SpawnOptions spawn;
  spawn.argv = {options_.launcher.string(), fmt::to_string(getpid())};
  const Argv client = client_command(trial.launch);
  spawn.argv.insert(spawn.argv.end(), client.begin(), client.end());
  spawn.environment = options_.environment;
  spawn.cwd = trial.launch.cwd;
  spawn.stdout_fd = pipe[1];
  spawn.stderr_file = trial.launch.folder / kClientFile;
  trial.pipe = pipe[0];
  trial.received.clear();
  trial.looks_in_file = false;
  try {
    const FolderLock lock(trial.launch.folder);  // dsat-launch inherits it
    spawn.keep_fd = lock.fd();
    trial.client = Subprocess::spawn(loop_, spawn, [this, id](const ExitStatus& exit) { handle_exit(id, exit); });
  } catch (...) {
    close(pipe[1]);
    close(pipe[0]);
    trial.pipe = -1;
    throw;
  }
  close(pipe[1]);
  loop_.watch(trial.pipe, [this, id] { receive(id); });
  if (runs_tasks(trial.launch)) look_for_start(id);
}

void RemoteEngine::look_for_start(uint64_t id) {
  RemoteTrial& trial = running_.at(id);
  trial.started = read_note(trial.launch.folder, kStartedFile, trial.launch.attempt);
  if (trial.started) return note_start(id);
  trial.timer = loop_.at(loop_.now() + kStartInterval, [this, id] { look_for_start(id); });
}

void RemoteEngine::close_pipe(RemoteTrial& trial) {
  if (trial.pipe < 0) return;
  loop_.unwatch(trial.pipe);
  close(trial.pipe);
  trial.pipe = -1;
}

void RemoteEngine::receive(uint64_t id) {
  RemoteTrial& trial = running_.at(id);
  char buffer[4096];
  const ssize_t got = read(trial.pipe, buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (trial.looks_in_file) {  // reads on, because a closed pipe would end its writer
    if (got <= 0) close_pipe(trial);
    return;
  }
  if (got > 0) trial.received.append(buffer, static_cast<size_t>(got));
  // A login shell may print any amount of text before the script starts.
  size_t start = 0;
  for (size_t stop = trial.received.find('\n'); stop != std::string::npos && !trial.started;
       start = stop + 1, stop = trial.received.find('\n', start)) {
    trial.started = parse_note(trial.received.substr(start, stop - start), trial.launch.attempt);
  }
  trial.received.erase(0, start);
  const bool is_hidden = trial.received.size() > kLongestNote;  // by a line without end
  if (is_hidden) trial.received.clear();
  if (got <= 0 || trial.started) close_pipe(trial);
  if (trial.started) return note_start(id);
  // The started file has the note too. Only one search for it may run.
  trial.looks_in_file = (got <= 0 || is_hidden) && !runs_tasks(trial.launch);
  if (trial.looks_in_file) look_for_start(id);
}

void RemoteEngine::note_start(uint64_t id) {
  const RemoteTrial& trial = running_.at(id);
  if (trial.is_ending) return signal_script(trial.launch, *trial.started, true);
  on_running(id);
}

void RemoteEngine::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it == running_.end()) return;
  RemoteTrial& trial = it->second;
  trial.is_ending = true;
  if (!trial.client) {  // between two tries
    if (trial.client_exit) return;
    loop_.cancel(trial.timer);
    trial.timer = loop_.at(loop_.now(), [this, id] { end(id, EngineEnd{}); });
    return;
  }
  if (!trial.started) return trial.client->signal(at_once ? kKillTree : SIGTERM);
  signal_script(trial.launch, *trial.started, at_once);
  if (!at_once) return;
  // A client ends with its script. A client that does not notice the end is killed.
  loop_.cancel(trial.timer);
  trial.timer = loop_.at(loop_.now() + kClientPatience, [this, id] { running_.at(id).client->signal(kKillTree); });
}

void RemoteEngine::handle_exit(uint64_t id, const ExitStatus& exit) {
  RemoteTrial& trial = running_.at(id);
  if (trial.pipe >= 0) receive(id);  // the note of a short trial may still be in the pipe
  close_pipe(trial);
  loop_.cancel(trial.timer);
  trial.client.reset();
  if (!trial.started) trial.started = read_note(trial.launch.folder, kStartedFile, trial.launch.attempt);
  if (trial.started) {
    trial.client_exit = exit;
    trial.deadline = loop_.now() + options_.file_patience;
    return look_for_end(id);
  }
  EngineEnd ended;
  ended.exit = exit;
  ++trial.tries;
  const auto pause = trial.is_ending ? std::nullopt : retry_after(trial, ended);
  if (!pause) return end(id, ended);
  trial.timer = loop_.at(loop_.now() + *pause, [this, id] {
    try {
      start_client(running_.at(id));
    } catch (const Error& error) {
      EngineEnd failed;
      failed.verdict = Verdict{Outcome::failed, error.what(), true};
      end(id, failed);
    }
  });
}

// The client has ended; the file with the note of the script's end may become visible later.
void RemoteEngine::look_for_end(uint64_t id) {
  RemoteTrial& trial = running_.at(id);
  EngineEnd ended;
  ended.exit = *trial.client_exit;
  if (const auto note = read_note(trial.launch.folder, kEndedFile, trial.launch.attempt)) {
    const bool others_failed = note->exit_status == 0 && runs_tasks(trial.launch);
    if (!others_failed) ended.exit = {note->exit_status, 0};
    ended.kernel_oom_kills = note->kernel_oom_kills;
    const bool was_ended = note->was_signalled || (others_failed && ended.exit.code != 0);
    if (was_ended && !trial.is_ending) explain(trial, ended);
    return end(id, ended);
  }
  // A killed script leaves no note. The client's status shows the kill, so there is nothing to wait for.
  const bool killed = trial.is_ending || ended.exit.code != 0;
  if (!killed && loop_.now() < trial.deadline) {
    trial.timer = loop_.at(loop_.now() + kLookAgain, [this, id] { look_for_end(id); });
    return;
  }
  if (!trial.is_ending) explain(trial, ended);
  end_script(id, ended);
}

void RemoteEngine::signal_script(const Launch& launch, const ScriptNote& note, bool at_once,
                                 std::function<void()> then) {
  background_.run(signal_command(launch, note, at_once), options_.environment, std::move(then));
}

// A client that broke off says nothing about its script, which may still run. The slots are free when the script is
// killed, or when its machine does not answer.
void RemoteEngine::end_script(uint64_t id, const EngineEnd& ended) {
  RemoteTrial& trial = running_.at(id);
  const uint64_t timer = loop_.at(loop_.now() + kClientPatience, [this, id, ended] { end(id, ended); });
  trial.timer = timer;
  signal_script(trial.launch, *trial.started, true, [this, id, timer, ended] {
    const auto it = running_.find(id);
    if (it != running_.end() && it->second.timer == timer) end(id, ended);
  });
}

void RemoteEngine::end(uint64_t id, const EngineEnd& ended) {
  RemoteTrial& trial = running_.at(id);
  loop_.cancel(trial.timer);
  close_pipe(trial);
  running_.erase(id);
  on_ended(id, ended);
}

std::string RemoteEngine::client_words(const Launch& launch) const {
  return read_tail(launch.folder / kClientFile, 64 * 1024);
}

}  // namespace dsat::host
