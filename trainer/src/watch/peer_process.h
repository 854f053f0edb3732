// A rank's process as its peers know it: by the name that it gives itself.
//
// Only processes of the same host and the same program can be looked after; of all others nothing is known.
// Threading: one thread at a time. Ownership: holds a pidfd, moved and not copied. Errors: none; what cannot be known
// is unknown.
#ifndef DSAT_TRAINER_WATCH_PEER_PROCESS_H_
#define DSAT_TRAINER_WATCH_PEER_PROCESS_H_

#include <string>

namespace dsat::trainer {

class PeerProcess {
 public:
  static std::string own_name();

  PeerProcess() = default;  // unknown
  explicit PeerProcess(const std::string& name);
  ~PeerProcess();
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&& other) noexcept;

  bool has_ended() const;  // known to have
  void kill() const;       // if it is known

 private:
  int fd_ = -1;           // the system's name of it, which no later process can take
  bool is_gone_ = false;  // it had ended, and been waited for, before it was named here
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WATCH_PEER_PROCESS_H_
