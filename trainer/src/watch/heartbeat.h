// A rank's signs of life, for the launcher: whether it lives, whether it moves, and what it waits in.
//
// Units: microseconds and bytes since the process began. Threading: WaitingIn from any thread; one Heartbeat in a
// process, with a thread of its own. Ownership: borrows the descriptor. Errors: none; a launcher that is gone takes
// this process with it.
#ifndef DSAT_TRAINER_WATCH_HEARTBEAT_H_
#define DSAT_TRAINER_WATCH_HEARTBEAT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace dsat::trainer {

inline constexpr std::chrono::milliseconds kBeatInterval{500};

// While it lives, the rank is in this operation with other ranks.
class WaitingIn {
 public:
  explicit WaitingIn(std::string operation);
  ~WaitingIn();
  WaitingIn(const WaitingIn&) = delete;
  WaitingIn& operator=(const WaitingIn&) = delete;
};

// That this many bytes have come from other ranks in a way that the system does not count. From any thread.
void count_exchanged(int64_t bytes);

struct Beat {
  int64_t cpu_us = 0;      // of the process so far, without this thread's
  int64_t io_bytes = 0;    // read and written by the process so far, network and exchanges included
  bool has_child = false;  // a child process of it runs
  std::string waiting_in;  // empty: in no operation with other ranks
};

// This process's; called by the thread whose time does not count.
Beat current_beat();
std::string to_line(const Beat& beat);  // without its end
std::optional<Beat> parse_beat(const std::string& line);
// Whether the process has done anything worth the name between the two, or code of the training's own may wait for a
// child process, whose work is not counted here.
bool has_moved(const Beat& before, const Beat& after);

// Writes a line to `fd` every kBeatInterval; each is one atomic write.
class Heartbeat {
 public:
  explicit Heartbeat(int fd);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void run(int fd);

  std::mutex mutex_;  // guards is_ending_
  std::condition_variable ending_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WATCH_HEARTBEAT_H_
