// Watches over the ranks of another launcher, for whose end as a whole nobody else answers.
//
// Twice a second each rank notes, where all of them can read it, that it lives and what it has done. Rank 0 keeps the
// notes and judges by the rules of our own launcher (rank_watch.h); for the others it is enough that it answers. Who
// fails notes the cause, and every rank ends with the first one. A rank that cannot read it, because it is
// stopped, is killed if it is a process of the same host: by rank 0, and rank 0 by the others.
// Threading: two threads of its own; its functions are for one other thread.
#ifndef DSAT_TRAINER_WATCH_PEER_WATCH_H_
#define DSAT_TRAINER_WATCH_PEER_WATCH_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "watch/peer_process.h"
#include "watch/rank_watch.h"

namespace dsat::trainer {

// Why a training failed, and the status that its ranks end with.
struct Cause {
  int status = 1;
  std::string text;  // one line
};

// Texts under names, kept by rank 0. Errors: any exception: rank 0 is gone, or has not answered for long. Stores differ
// in whether they notice that one who is stopped does not answer: a call may also never return.
class Notes {
 public:
  virtual ~Notes() = default;
  // Has arrived when it returns.
  virtual void write(const std::string& name, const std::string& text) = 0;
  // Leaves one that is there as it is.
  virtual void write_first(const std::string& name, const std::string& text) = 0;
  virtual std::optional<std::string> read(const std::string& name) = 0;
};

class PeerWatch {
 public:
  // Returns when rank 0 has come, or throws what `notes` do. `end` ends this process, for a cause of others; it is
  // called by one of the watch's threads, and does not return.
  using End = std::function<void(const Cause&)>;
  PeerWatch(std::unique_ptr<Notes> notes, int rank, int size, End end);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  // For one who has lost a peer: the process ends here, unless nobody finds the cause.
  void wait_for_cause();
  // The watch's end, before the process's own. `own`: why this rank fails; absent: all ranks have done their work, and
  // rank 0 stays until the others know it.
  void leave(const std::optional<Cause>& own = std::nullopt);

 private:
  using Clock = RankWatch::Clock;
  struct Peer {
    PeerProcess process;
    std::string last_beat;
    bool is_known = false;  // by its process's name
    bool has_left = false;
  };

  void run();
  void wait_for_answers();
  void end_once(const Cause& cause);
  bool pause(std::chrono::milliseconds time);  // false: it is time to leave
  void beat();
  void say_goodbye();
  void look();
  void look_as_keeper();
  void receive(int rank);
  void meet(int rank);
  void wait_for_others(Clock::time_point end);
  bool have_left(bool or_died);
  void end_with(const Cause& cause);
  Cause loss_of_keeper() const;

  const std::unique_ptr<Notes> notes_;
  const int rank_, size_;
  const End end_;
  std::vector<Peer> peers_;  // by rank
  RankWatch watch_;          // rank 0's
  int64_t beats_ = 0;
  std::atomic<Clock::time_point> answered_;  // by rank 0
  std::optional<Cause> own_;                 // before is_leaving_

  std::mutex mutex_;  // guards is_leaving_ and is_over_
  std::condition_variable changed_;
  bool is_leaving_ = false, is_over_ = false;
  std::once_flag ended_;
  std::thread thread_, guard_;  // the guard: of ranks that wait for rank 0's answers
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WATCH_PEER_WATCH_H_
