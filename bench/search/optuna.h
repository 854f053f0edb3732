// Optuna as a searcher: a Python process that is asked and told (optuna_peer.py).
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

// One study of it: the searchers' space, with a micro batch up to what the profile thinks possible.
class OptunaStudy final : public Asked {
 public:
  OptunaStudy(OptunaProcess& process, const std::string& sampler, const std::string& out_of_memory,
              const StudySetting& setting, const ProfileRun& profile);
  Json next() override;
  void told(const Json& overrides, const testing::Answer& answer) override;

 private:
  OptunaProcess& process_;
  std::map<std::string, std::vector<Json>> ids_;  // of open trials, by their overrides
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_OPTUNA_H_
