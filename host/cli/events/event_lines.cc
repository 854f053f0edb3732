// Each event is an object whose member `event` names it.
#include "events/event_lines.h"

#include "dsat/config/json.h"

namespace dsat::cli {
namespace {

constexpr int kVersion = 1;  // raised if a member changes its meaning or goes; new events and members do not raise it

const char* name_of(host::Observer::Severity severity) {
  switch (severity) {
    case host::Observer::Severity::debug:
      return "debug";
    case host::Observer::Severity::info:
      return "info";
    case host::Observer::Severity::warning:
      return "warning";
    default:
      return "error";
  }
}

}  // namespace

void EventLines::start(const host::Study& study) {
  const Json& settings = study.settings();
  take_(config::text_of({{"event", "start"},
                         {"version", kVersion},
                         {"dir", study.dir().string()},
                         {"metric", settings.value("metric", Json())},
                         {"max_trials", settings.value("max_trials", Json())}}));
}

void EventLines::put(const char* event, const char* member, Json value) {
  take_(config::text_of({{"event", event}, {member, std::move(value)}}));
}

void EventLines::result(const Json& result) { put("result", "result", result); }
void EventLines::on_log(Severity severity, std::string_view message) {
  take_(config::text_of({{"event", "log"}, {"severity", name_of(severity)}, {"message", std::string(message)}}));
}
void EventLines::on_trial_submitted(const host::TrialRecord& trial) { put("submitted", "trial", to_json(trial)); }
void EventLines::on_trial_started(const host::TrialRecord& trial) { put("started", "trial", to_json(trial)); }
void EventLines::on_trial_ended(const host::TrialRecord& trial) { put("ended", "trial", to_json(trial)); }
void EventLines::on_profile(const Json& profile) { put("profile", "profile", profile); }
void EventLines::on_best(const host::BestRecord& best) { put("best", "best", to_json(best)); }

}  // namespace dsat::cli
