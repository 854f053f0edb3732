// Optuna as a searcher, by its ask-and-tell interface, in a Python process behind a pipe (optuna_peer.py).
// Errors: dsat::Error if the process ends or sends anything but JSON.
#ifndef DSAT_BENCH_SEARCH_OPTUNA_H_
#define DSAT_BENCH_SEARCH_OPTUNA_H_

#include <sys/types.h>

#include <cstdio>
#include <string>

#include "search/study_run.h"

namespace dsat::bench {

// The process, for many studies. Threading: one thread.
class OptunaProcess {
 public:
  // version() is empty if Python or Optuna is missing.
  OptunaProcess(const std::string& python, const std::string& script);
  ~OptunaProcess();
  OptunaProcess(const OptunaProcess&) = delete;
  OptunaProcess& operator=(const OptunaProcess&) = delete;

  const std::string& version() const { return version_; }
  void send(const Json& message);
  Json receive();

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  std::string version_;
};

// One study in Optuna, over the searchers' space. The profile bounds the micro batch.
// Threading: one thread. Ownership: refers to the process, which must live longer.
class OptunaStudy final : public AskTell {
 public:
  OptunaStudy(OptunaProcess& process, const std::string& sampler, const std::string& out_of_memory,
              const StudySetting& setting, const ProfileRun& profile);
  Json ask() override;
  void tell(const Json& overrides, const testing::Answer& answer) override;

 private:
  OptunaProcess& process_;
  std::map<std::string, std::vector<Json>> ids_;  // ids of open trials by their overrides
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_OPTUNA_H_
