// The events of a study as lines of JSON (docs/python.md).
//
// Threading: as an Observer's. Errors: those of `take`, as Observer has it.
#ifndef DSAT_CLI_EVENTS_EVENT_LINES_H_
#define DSAT_CLI_EVENTS_EVENT_LINES_H_

#include <functional>
#include <string>
#include <string_view>

#include "dsat/host/study.h"

namespace dsat::cli {

class EventLines : public host::Observer {
 public:
  // `take` is called with each line, without a line feed.
  explicit EventLines(std::function<void(std::string)> take) : take_(std::move(take)) {}

  void start(const host::Study& study);  // the first event
  void on_log(Severity severity, std::string_view message) override;
  void on_trial_submitted(const host::TrialRecord& trial) override;
  void on_trial_started(const host::TrialRecord& trial) override;
  void on_trial_ended(const host::TrialRecord& trial) override;
  void on_profile(const Json& profile) override;
  void on_best(const host::BestRecord& best) override;
  void result(const Json& result);  // the last event: the object of --json

 private:
  void put(const char* event, const char* member, Json value);

  std::function<void(std::string)> take_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_EVENTS_EVENT_LINES_H_
