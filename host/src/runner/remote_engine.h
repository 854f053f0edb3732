// Trials on other machines, each below a client that this machine runs: ssh, srun.
//
// The client carries a trial's script there (trial_script.h) and lives as long as it. What differs between clients is
// the command line that starts a script, and how one that runs is signalled: a class of its own for each.
// Threading: control thread only. Ownership: destroying the engine ends the clients; whether the script ends with its
// client is the client's matter.
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
#include "runner/aside.h"
#include "runner/engine.h"
#include "runner/trial_script.h"

namespace dsat::host {

// In a trial's folder: what the client itself says.
inline constexpr const char* kClientFile = "client.txt";

struct RemoteEngineOptions {
  std::filesystem::path launcher;  // dsat-launch; absolute
  Environment environment;         // of the clients
  std::vector<Slot> slots;
  std::optional<int> max_slots{};
  // How long a file of a trial that has ended may take to be seen from here.
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
  bool take_up(const Launch& launch) override;

 protected:
  struct Running {
    Launch launch;
    std::unique_ptr<Subprocess> client;
    int pipe = -1;  // the script's note of its start comes through it
    std::string received;
    bool looks_in_file = false;  // for the note; what is received from then on is thrown away
    std::optional<ScriptNote> started;
    std::optional<ExitStatus> client_exit;
    bool is_ending = false;
    int tries = 0;  // clients that ended before the script began
    uint64_t timer = 0;
    Loop::Clock::time_point deadline;
  };

  // What differs. `client_command`: starts run.sh of the folder on the trial's first node, and ends with its status.
  virtual Argv client_command(const Launch& launch) const = 0;
  virtual void write_script(const Launch& launch) const = 0;
  // Does the client run the script as several tasks at once? Its output is then theirs: that it runs is seen by the
  // file of the note, and it ends as its worst task does.
  virtual bool runs_tasks(const Launch& /*launch*/) const { return false; }
  // Signals the script, or what it runs in; the client's end follows.
  virtual Argv signal_command(const Launch& launch, const ScriptNote& note, bool at_once) const = 0;
  // The client ended and the script has not begun. A time: try again then; nullopt: the trial has ended with `end`.
  virtual std::optional<std::chrono::milliseconds> retry_after(const Running& trial, EngineEnd& end) = 0;
  // The script has begun, its client has ended, and no end was noted: what is known of the reason.
  virtual void explain(const Running& trial, EngineEnd& end) = 0;

  std::string client_words(const Launch& launch) const;  // the end of the client's output

  Loop& loop_;
  RemoteEngineOptions options_;
  SlotPool slots_;

 private:
  void start_client(Running& trial);
  void receive(uint64_t id);
  void look_for_start(uint64_t id);
  void note_start(uint64_t id);
  void handle_exit(uint64_t id, const ExitStatus& exit);
  void look_for_end(uint64_t id);
  void signal_script(const Launch& launch, const ScriptNote& note, bool at_once, std::function<void()> then = {});
  void end_script(uint64_t id, const EngineEnd& ended);
  void end(uint64_t id, const EngineEnd& end);
  void close_pipe(Running& trial);

  std::map<uint64_t, Running> running_;
  Aside aside_{loop_};
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_REMOTE_ENGINE_H_
