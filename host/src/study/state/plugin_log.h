// Passes the lines that plugins log to the study's observer.
//
// Threading: write() may be called on any thread and wakes the loop; forward() runs on the control thread.
#ifndef DSAT_HOST_STUDY_STATE_PLUGIN_LOG_H_
#define DSAT_HOST_STUDY_STATE_PLUGIN_LOG_H_

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "dsat/host/study.h"

namespace dsat::host {

class PluginLog {
 public:
  explicit PluginLog(Loop& loop) : loop_(loop) {}

  // `severity` as in dsat_host.log.
  void write(int severity, std::string_view message);
  void forward(Observer& observer);

  // Lines are dropped while a Muted exists. A replay uses it, because the lines were shown before.
  class Muted {
   public:
    explicit Muted(PluginLog& log) : log_(log) { log_.mute(true); }
    ~Muted() { log_.mute(false); }
    Muted(const Muted&) = delete;
    Muted& operator=(const Muted&) = delete;

   private:
    PluginLog& log_;
  };

 private:
  void mute(bool muted);

  Loop& loop_;
  std::mutex mutex_;
  bool muted_ = false;
  std::vector<std::pair<int, std::string>> lines_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_PLUGIN_LOG_H_
