// Optuna as a searcher, by its ask-and-tell interface: a Python process at the other end of a pipe (optuna_peer.py).
// Errors: dsat::Error where the process cannot be started, ends, or sends what is no JSON.
#ifndef DSAT_BENCH_SEARCH_OPTUNA_H_
#define DSAT_BENCH_SEARCH_OPTUNA_H_

#include <sys/types.h>

#include <cstdio>
#include <string>

#include "search/study_run.h"

namespace dsat::bench {

// The process; one for many studies. Threading: one thread.
class OptunaProcess {
 public:
  // Throws dsat::Error when Python cannot be started. version() is empty when Optuna is not installed.
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

// One study in Optuna, over the searchers' space, with a micro batch up to what the profile thinks possible.
// Threading: one thread. Ownership: refers to the process, which must live longer.
class OptunaStudy final : public AskTell {
 public:
  OptunaStudy(OptunaProcess& process, const std::string& sampler, const std::string& out_of_memory,
              const StudySetting& setting, const ProfileRun& profile);
  Json ask() override;
  void tell(const Json& overrides, const testing::Answer& answer) override;

 private:
  OptunaProcess& process_;
  std::map<std::string, std::vector<Json>> ids_;  // of open trials, by their overrides
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_OPTUNA_H_
