// A list behind a mutex: plugins append to it and wake the loop, the control thread empties it.
#include "study/state/plugin_log.h"

namespace dsat::host {
namespace {

Observer::Severity severity_of(int severity) {
  if (severity <= 0) return Observer::Severity::debug;
  if (severity == 1) return Observer::Severity::info;
  return severity == 2 ? Observer::Severity::warning : Observer::Severity::error;
}

}  // namespace

void PluginLog::write(int severity, std::string_view message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (muted_) return;
  lines_.emplace_back(severity, message);
  loop_.wake();
}

void PluginLog::forward(Observer& observer) {
  std::vector<std::pair<int, std::string>> lines;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines.swap(lines_);
  }
  for (const auto& [severity, message] : lines) observer.on_log(severity_of(severity), message);
}

void PluginLog::mute(bool muted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  muted_ = muted;
}

}  // namespace dsat::host
