// Keeps DIR/report.html current while a study runs, so that a host that is killed leaves the page of its last seconds.
//
// Purpose: first after some seconds, then at most every kBetween, and never more than a hundredth of the time; only
//   where something has happened. It ends before the journal is closed, since a reader would keep that from being one
//   file; the last page is written after the study (commands/report.h).
// Threading: the observer's functions on the study's thread; a thread of its own reads the journal and writes the page,
//   with all signals blocked. Ownership: none. Errors: none; a page that cannot be written is reported at the study's
//   end, and where no thread can be had the first one is written then.
#ifndef DSAT_CLI_COMMANDS_CURRENT_REPORT_H_
#define DSAT_CLI_COMMANDS_CURRENT_REPORT_H_

#include <chrono>
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

// Writes the page, and hands what it has read of the journal to `tell`, on the same thread.
CurrentReport::Write page_writer(std::function<void(const host::StudyFacts&)> tell);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_CURRENT_REPORT_H_
