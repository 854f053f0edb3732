// The first frame of a traceback shows whose traceback it is, and its last line shows what happened. If a launcher's
// traceback reports a failed child, or if there is another traceback, the failure is the script's.
#include "outputs/launcher_failure.h"

#include <fmt/format.h>
#include <re2/re2.h>

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

// A traceback of a launcher, as indices of lines.
struct LauncherTraceback {
  size_t begin = 0, message = 0;  // `message` may be the number of lines: it is missing
  std::string_view launcher;
};

// The first frame, after those of runpy, shows whose traceback it is. nullopt: it is not a launcher's.
std::optional<LauncherTraceback> traceback_at(const std::vector<std::string>& lines, size_t begin) {
  constexpr size_t kEntry = 16;  // lines
  const auto first = lines.begin() + static_cast<std::ptrdiff_t>(begin) + 1;
  const auto last = first + static_cast<std::ptrdiff_t>(std::min(kEntry, lines.size() - begin - 1));
  const auto frame =
      std::find_if(first, last, [](const std::string& line) { return is_traceback_frame(line) && !is_entry(line); });
  if (frame == last) return std::nullopt;
  const auto* launcher = std::find_if(std::begin(kLaunchers), std::end(kLaunchers),
                                      [&](const LauncherCode& code) { return contains(*frame, code.path); });
  if (launcher == std::end(kLaunchers)) return std::nullopt;
  const auto message = std::find_if(frame, lines.end(), [](const std::string& line) { return line.front() != ' '; });
  return LauncherTraceback{begin, static_cast<size_t>(message - lines.begin()), launcher->name};
}

std::vector<LauncherTraceback> launcher_tracebacks(const std::vector<std::string>& lines) {
  std::vector<LauncherTraceback> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!begins_traceback(lines[i])) continue;
    if (const auto traceback = traceback_at(lines, i)) found.push_back(*traceback);
  }
  return found;
}

// accelerate starts a lone script by Python's subprocess, whose exception says how the script ended.
std::optional<RankEnd> end_of_child(const std::string& message) {
  static const RE2 killed(R"(CalledProcessError: .* died with <Signals\.\w+: (\d+)>)", RE2::Latin1);
  static const RE2 failed(R"(CalledProcessError: .* returned non-zero exit status (\d+))", RE2::Latin1);
  int number = 0;
  if (RE2::PartialMatch(message, killed, &number)) return RankEnd{{}, -number};
  if (RE2::PartialMatch(message, failed, &number)) return RankEnd{{}, number};
  return std::nullopt;
}

// The remedy if a script or torchrun wants libuv of a torch that is built without it. torchrun makes a store of its own
// beside the script's, and only a file keeps it from TCP.
std::string without_libuv(const std::vector<std::string>& lines) {
  const auto any_has = [&](std::string_view text) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return contains(line, text); });
  };
  if (!any_has("use_libuv was requested but PyTorch was buil")) return "";
  return any_has("/torch/distributed/elastic/rendezvous/")
             ? "this torch has no libuv, which torchrun wants: put USE_LIBUV=0 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in "
               "front of it, and give it --rdzv-backend c10d --rdzv-conf store_type=file"
             : "this torch has no libuv: put USE_LIBUV=0 in front of the command";
}

}  // namespace

std::string launcher_failure(const std::vector<std::string>& lines) {
  if (std::string remedy = without_libuv(lines); !remedy.empty()) return remedy;
  if (std::count_if(lines.begin(), lines.end(), begins_traceback) != 1) return "";
  const std::vector<LauncherTraceback> own = launcher_tracebacks(lines);
  if (own.empty() || own[0].message == lines.size() || reports_child(lines[own[0].message])) return "";
  return fmt::format("{} failed by itself: {}", own[0].launcher, lines[own[0].message]);
}

std::vector<bool> lines_of_launchers(const std::vector<std::string>& lines) {
  std::vector<bool> are_launchers(lines.size(), false);
  for (const LauncherTraceback& traceback : launcher_tracebacks(lines)) {
    const size_t end = std::min(traceback.message + 1, lines.size());
    for (size_t i = traceback.begin; i < end; ++i) are_launchers[i] = true;
  }
  return are_launchers;
}

// torchrun's table names the first failure last, below "Root Cause". Its line "failed (exitcode: ..." is about the
// first failure that it sees on this machine.
std::optional<RankEnd> first_rank_end(const std::vector<std::string>& lines) {
  static const RE2 of_table(R"(^\s*exitcode +: (-?\d+))", RE2::Latin1);
  static const RE2 rank_of_table(R"(^\s*rank +: (\d+))", RE2::Latin1);
  static const RE2 of_agent(R"(failed \(exitcode: (-?\d+)\) local_rank: (\d+))", RE2::Latin1);
  static const RE2 of_deepspeed(R"(exits with return code = (-?\d+))", RE2::Latin1);
  std::optional<RankEnd> root, seen;
  bool is_root = false;
  int rank = 0, code = 0;
  for (const std::string& line : lines) {
    is_root = is_root || contains(line, "Root Cause (first observed failure)");
    if (is_root && RE2::PartialMatch(line, rank_of_table, &rank)) root = RankEnd{rank, 0};
    if (root && root->code == 0 && RE2::PartialMatch(line, of_table, &code)) root->code = code;
    if (seen) continue;
    if (RE2::PartialMatch(line, of_agent, &code, &rank)) seen = RankEnd{rank, code};
    if (RE2::PartialMatch(line, of_deepspeed, &code)) seen = RankEnd{{}, code};
  }
  if (root && root->code != 0) return root;
  if (seen && seen->code != 0) return seen;
  for (const LauncherTraceback& traceback : launcher_tracebacks(lines)) {
    if (traceback.message == lines.size()) continue;
    if (const auto end = end_of_child(lines[traceback.message])) return end;
  }
  return std::nullopt;
}

std::string not_injected(const std::vector<std::string>& lines) {
  const std::string name = "dsat: ", mark = name + "the configuration was not injected: ";
  for (const std::string& line : lines) {
    if (const size_t at = line.find(mark); at != std::string::npos) return line.substr(at + name.size());
  }
  return "";
}

}  // namespace dsat::host
