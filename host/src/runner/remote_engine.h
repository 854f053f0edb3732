// Runs trials on other machines, each below a client on this machine: ssh, srun.
//
// The client carries the trial's script to the machine (trial_script.h) and ends with it. A subclass for each client
// has the command lines that start a script and signal it.
// Threading: control thread only. Ownership: the destructor ends the clients; the client decides whether its script
// ends with it.
#ifndef DSAT_HOST_RUNNER_REMOTE_ENGINE_H_
#define DSAT_HOST_RUNNER_REMOTE_ENGINE_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "runner/background_commands.h"
#include "runner/engine.h"
#include "runner/trial_script.h"

namespace dsat::host {

// The file for the client's own output, in the trial's folder.
inline constexpr const char* kClientFile = "client.txt";

struct RemoteEngineOptions {
  std::filesystem::path launcher;  // absolute path of dsat-launch
  Environment environment;         // of the clients
  std::vector<Slot> slots;
  std::optional<int> max_slots{};
  // The longest delay until a file of an ended trial is visible on this machine.
  std::chrono::milliseconds file_patience{std::chrono::seconds(30)};
};

class RemoteEngine : public Engine {
 public:
  RemoteEngine(Loop& loop, RemoteEngineOptions options);
  ~RemoteEngine() override;

  bool has_room_for(const std::vector<TrialShape>& shapes) const override;
  std::optional<std::vector<Slot>> take(const TrialShape& shape) override { return slots_.take(shape); }
  void give_back(const std::vector<Slot>& slots) override { slots_.give_back(slots); }
  bool withhold(const std::vector<Slot>& slots, const std::vector<TrialShape>& shapes) override {
    return slots_.withhold(slots, shapes);
  }
  void restore(const std::vector<Slot>& slots) override { slots_.restore(slots); }
  void launch(const Launch& launch) override;
  void stop(uint64_t id, bool at_once) override;
  bool adopt(const Launch& launch) override;

 protected:
  struct RemoteTrial {
    Launch launch;
    std::unique_ptr<Subprocess> client;
    int pipe = -1;  // the script sends the note of its start through it
    std::string received;
    bool looks_in_file = false;  // the note is looked for in the file; what the pipe receives is ignored
    std::optional<ScriptNote> started;
    std::optional<ExitStatus> client_exit;
    bool is_ending = false;
    int tries = 0;  // clients that ended before the script started
    uint64_t timer = 0;
    Loop::Clock::time_point deadline;
  };

  // Returns the command that starts the folder's run.sh on the trial's first node and ends with its status.
  virtual Argv client_command(const Launch& launch) const = 0;
  virtual void write_script(const Launch& launch) const = 0;
  // Returns whether the client runs the script as several tasks at once. Then the client's output is the tasks' output,
  // the script's start is seen only in the file of the note, and the client ends like its worst task.
  virtual bool runs_tasks(const Launch& /*launch*/) const { return false; }
  // Returns the command that signals the script, or the job it runs in; the client then ends.
  virtual Argv signal_command(const Launch& launch, const ScriptNote& note, bool at_once) const = 0;
  // Called if the client ended before the script started. Returns when to try again; nullopt: the trial has ended with
  // `end`.
  virtual std::optional<std::chrono::milliseconds> retry_after(const RemoteTrial& trial, EngineEnd& end) = 0;
  // Called if the script started, its client ended, and no end was noted. Adds what is known about the reason.
  virtual void explain(const RemoteTrial& trial, EngineEnd& end) = 0;

  std::string client_words(const Launch& launch) const;  // the end of the client's output

  Loop& loop_;
  RemoteEngineOptions options_;
  SlotPool slots_;

 private:
  void start_client(RemoteTrial& trial);
  void receive(uint64_t id);
  void look_for_start(uint64_t id);
  void note_start(uint64_t id);
  void handle_exit(uint64_t id, const ExitStatus& exit);
  void look_for_end(uint64_t id);
  void signal_script(const Launch& launch, const ScriptNote& note, bool at_once, std::function<void()> then = {});
  void end_script(uint64_t id, const EngineEnd& ended);
  void end(uint64_t id, const EngineEnd& end);
  void close_pipe(RemoteTrial& trial);

  std::map<uint64_t, RemoteTrial> running_;
  BackgroundCommands background_{loop_};
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_REMOTE_ENGINE_H_
