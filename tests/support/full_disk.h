// A disk without space, for as long as an object lives.
#ifndef DSAT_TESTS_SUPPORT_FULL_DISK_H_
#define DSAT_TESTS_SUPPORT_FULL_DISK_H_

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>

namespace dsat {

// No file may grow beyond `bytes` while this lives: a write up to there succeeds, further ones fail.
class FullDisk {
 public:
  explicit FullDisk(uintmax_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

}  // namespace dsat

#endif  // DSAT_TESTS_SUPPORT_FULL_DISK_H_
