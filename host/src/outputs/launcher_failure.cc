// The first frame of the only traceback shows whose traceback it is, and its last line shows what happened. If a
// launcher's traceback reports a failed child, or if there is another traceback, the failure is the script's.
#include "outputs/launcher_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace dsat::host {

namespace {

struct LauncherCode {
  std::string_view path;  // part of the line of a frame
  std::string_view name;
};
constexpr LauncherCode kLaunchers[] = {
    {"/torch/distributed/run.py", "torchrun"},
    {"/torch/distributed/launch.py", "torchrun"},
    {"/bin/torchrun", "torchrun"},
    {"/deepspeed/launcher/", "deepspeed"},
    {"/bin/deepspeed", "deepspeed"},
    {"/bin/accelerate", "accelerate"},
    {"/accelerate/commands/", "accelerate"},
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool begins_traceback(const std::string& line) { return contains(line, "Traceback (most recent call last)"); }

bool is_traceback_frame(const std::string& line) { return contains(line, "  File \"") && contains(line, "\", line "); }

// The frames by which `python -m` enters a program.
bool is_entry(const std::string& line) { return contains(line, "<frozen runpy>") || contains(line, "/runpy.py\""); }

// The exceptions that a launcher raises when the script has failed.
bool reports_child(std::string_view line) {
  return contains(line, "ChildFailedError") || contains(line, "CalledProcessError") ||
         contains(line, "SignalException") || contains(line, "KeyboardInterrupt");
}

}  // namespace

std::string launcher_failure(const std::vector<std::string>& lines) {
  const auto last = std::find_if(lines.rbegin(), lines.rend(), begins_traceback);
  if (last == lines.rend() || std::find_if(std::next(last), lines.rend(), begins_traceback) != lines.rend()) return "";
  const auto begin = last.base();  // the line after "Traceback"
  const auto frame = std::find_if(begin, lines.end(),
                                  [](const std::string& line) { return is_traceback_frame(line) && !is_entry(line); });
  if (frame == lines.end()) return "";
  const auto* launcher = std::find_if(std::begin(kLaunchers), std::end(kLaunchers),
                                      [&](const LauncherCode& code) { return contains(*frame, code.path); });
  if (launcher == std::end(kLaunchers)) return "";
  const auto message = std::find_if(frame, lines.end(), [](const std::string& line) { return line.front() != ' '; });
  if (message == lines.end() || reports_child(*message)) return "";
  return fmt::format("{} failed by itself: {}", launcher->name, *message);
}

}  // namespace dsat::host
