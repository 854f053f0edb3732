// Keeps DIR/report.html current while a study runs, so that a host that is killed leaves a recent page.
//
// Purpose: the page is written after the first seconds, then after starts and ends of trials, at most every kBetween
//   and for at most a hundredth of the time. The writing thread ends before the journal is closed, since SQLite cannot
//   remove its log file while a reader is there. The last page is written after the study (commands/report.h).
// Threading: the observer's functions are called on the study's thread. A thread of its own, with all signals blocked,
//   reads the journal and writes the page. Errors: none; without a thread only the page at the study's end is written,
//   and a failed write is reported there.
#ifndef DSAT_CLI_COMMANDS_CURRENT_REPORT_H_
#define DSAT_CLI_COMMANDS_CURRENT_REPORT_H_

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "dsat/host/facts.h"
#include "dsat/host/study.h"

namespace dsat::cli {

class CurrentReport final : public host::Observer {
 public:
  using Write = std::function<void(const std::filesystem::path& dir)>;
  CurrentReport(std::filesystem::path dir, Write write);
  ~CurrentReport() override;
  CurrentReport(const CurrentReport&) = delete;
  CurrentReport& operator=(const CurrentReport&) = delete;

  void on_trial_started(const host::TrialRecord& trial) override;
  void on_trial_ended(const host::TrialRecord& trial) override;
  void on_closing() override;

 private:
  void keep();
  void write_and_forget() const;
  void note();

  const std::filesystem::path dir_;
  const Write write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stale_ = false, ended_ = false;
  std::thread thread_;
};

// Writes the page, and passes the facts that it has read to `tell`, on the same thread.
CurrentReport::Write page_writer(std::function<void(const host::StudyFacts&)> tell);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_CURRENT_REPORT_H_
