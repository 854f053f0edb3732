// The exit statuses of dsat-host; scripts rely on them.
#ifndef DSAT_CLI_TERMINAL_EXIT_STATUS_H_
#define DSAT_CLI_TERMINAL_EXIT_STATUS_H_

#include "dsat/error.h"
#include "dsat/host/record.h"
#include "dsat/host/status.h"

namespace dsat::cli {

enum ExitCode : int {
  kBestFound = 0,    // also: a sub-command did what it was asked
  kNoBest = 1,       // the study ended without a best configuration, or the full training failed
  kUsage = 2,        // wrong usage or configuration: nothing was run
  kInterrupted = 3,  // resumable
  kFailed = 4,       // the host, a plugin or the machine failed
};

inline ExitCode exit_status(host::StudyStatus status) {
  switch (status) {
    case host::StudyStatus::completed:
      return kBestFound;
    case host::StudyStatus::no_best:
      return kNoBest;
    case host::StudyStatus::interrupted:
      return kInterrupted;
    case host::StudyStatus::running:
    case host::StudyStatus::failed:
      break;
  }
  return kFailed;
}

inline ExitCode exit_status(const host::Status& status) {
  if (status.ok()) return kBestFound;
  return status.code() == host::Status::Code::invalid ? kUsage : kFailed;
}

// The user can mend a wrong command line or file; DSAT_INTERNAL is a fault of the machine or of dsat.
inline ExitCode exit_status(const Error& error) { return error.code() == DSAT_INTERNAL ? kFailed : kUsage; }

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_EXIT_STATUS_H_
