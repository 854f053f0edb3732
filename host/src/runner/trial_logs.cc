// The number of bytes read is divided among the ranks' files, so a thousand files cost no more than a few.
#include "runner/trial_logs.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <system_error>

#include "command/command_template.h"
#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "outputs/curve.h"
#include "runner/output_limit.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// Enough for the tracebacks of many ranks, since the rank that ran out of memory is often not the last one to write.
constexpr size_t kStreamBytes = 256 * 1024;
// The bytes of all ranks' files together, and the least of one file.
constexpr size_t kRankBytes = 4 * 1024 * 1024, kLeastRankBytes = 8 * 1024;
constexpr size_t kMostRankFiles = 1024;
constexpr int kDeepest = 5;          // torchrun's files are rank_logs/<run>/attempt_0/<rank>/stderr.log
constexpr int kMostEntries = 10000;  // a trial may leave a whole data set in its folder

bool is_named(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* other) { return name == other; });
}

LogStream stream_of(const fs::path& file) {
  const std::string name = file.filename().string(), kind = file.extension().string();
  if (name == kStderrFile || kind == ".err") return LogStream::standard_error;
  if (name == kStdoutFile || kind == ".out") return LogStream::standard_output;
  return LogStream::both;
}

// Finds the rank in deepspeed's <time>_rank3.log and torchrun's <run>/attempt_0/3/stderr.log.
std::optional<int> rank_of(const std::string& name) {
  static const RE2 of_file(R"(rank[_-]?(\d+)[^/\d]*$)", RE2::Latin1);
  static const RE2 of_folder(R"(/(\d+)/std(?:err|out)\.log$)", RE2::Latin1);
  int rank = 0;
  const bool found = RE2::PartialMatch(name, of_file, &rank) || RE2::PartialMatch(name, of_folder, &rank);
  return found ? std::optional<int>(rank) : std::nullopt;
}

// Returns the files below the trial's folder that hold output, sorted by name, without the trial's own two streams.
std::vector<fs::path> find_rank_logs(const fs::path& trial_dir, TrialLogs& found) {
  std::vector<fs::path> files;
  std::error_code error;
  int entries = 0;
  for (fs::recursive_directory_iterator it(trial_dir, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end && entries < kMostEntries; it.increment(error), ++entries) {
    const std::string name = it->path().filename().string();
    if (it.depth() == 0 && is_named(name, {kStdoutFile, kStderrFile})) continue;
    if (it->is_directory(error)) {
      const bool others = it.depth() == 0 && is_named(name, {"attempts", kCwdFolder});
      if (others || it.depth() >= kDeepest) it.disable_recursion_pending();
      continue;
    }
    if (is_named(it->path().extension().string(), {".log", ".err", ".out"})) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kMostRankFiles) {
    found.notes.push_back(fmt::format("{} log files: only the first {} were read", files.size(), kMostRankFiles));
    files.resize(kMostRankFiles);
  }
  return files;
}

void read_log(const fs::path& trial_dir, const fs::path& file, size_t most_bytes, TrialLogs& into) {
  TrialLog log;
  log.name = file.lexically_relative(trial_dir).string();
  log.stream = stream_of(file);
  log.rank = rank_of(log.name);
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    if (fs::exists(file, error)) into.notes.push_back(log.name + " is no regular file: it was not read");
    return;
  }
  log.bytes = fs::file_size(file, error);
  log.is_cut = !error && log.bytes > most_bytes;
  const std::string text = read_tail(file, most_bytes);
  if (text.empty() && log.bytes > 0) into.notes.push_back(log.name + " cannot be read");
  log.lines = printable_lines(text);
  into.logs.push_back(std::move(log));
}

// The bytes that are read of each stream, and of all ranks' files together.
struct LogBounds {
  size_t stream = kStreamBytes, ranks = kRankBytes;
};

void read_rank_logs(const fs::path& trial_dir, bool expected, LogBounds bounds, TrialLogs& into) {
  const std::vector<fs::path> files = find_rank_logs(trial_dir, into);
  const size_t share = files.empty() ? 0 : std::clamp(bounds.ranks / files.size(), kLeastRankBytes, bounds.stream);
  for (const fs::path& file : files) read_log(trial_dir, file, share, into);
  if (expected && files.empty()) {
    into.notes.push_back(fmt::format(
        "{} in the trial's folder has no rank's log, though the command asks its launcher for them", kRankLogFolder));
  }
}

// Whether the command is `script 2>&1 | tee FILE`, so that the error is in standard output.
bool prints_all_to_stdout(const TrialLogs& logs) {
  const TrialLog *out = logs.find(kStdoutFile), *error = logs.find(kStderrFile);
  const auto is_trace = [](const std::string& line) {
    return starts_with(without_prefixes(line), "Traceback (most recent call last)");
  };
  return out != nullptr && (error == nullptr || error->lines.empty()) &&
         std::any_of(out->lines.begin(), out->lines.end(), is_trace);
}

void find_meanings(const RunFacts& facts, TrialLogs& logs) {
  const LineReader reader(facts.oom_patterns);
  const bool is_joined = prints_all_to_stdout(logs);
  for (TrialLog& log : logs.logs) {
    if (is_joined && log.stream == LogStream::standard_output) log.stream = LogStream::both;
    log.meanings = reader.read(log.lines, log.stream);
    // The begin of a cut line is missing. It may have marked the line as quoted or as data, so the line counts for
    // nothing.
    if (log.is_cut && !log.lines.empty()) log.meanings.front() = {};
  }
}

TrialLogs read_lines(const RunFacts& facts, LogBounds bounds) {
  TrialLogs logs;
  read_log(facts.trial_dir, facts.trial_dir / kStderrFile, bounds.stream, logs);
  read_rank_logs(facts.trial_dir, facts.expects_rank_logs, bounds, logs);
  read_log(facts.trial_dir, facts.trial_dir / kStdoutFile, bounds.stream, logs);
  for (TrialLog& log : logs.logs) take_off_hosts(facts.hosts, log.lines);
  return logs;
}

}  // namespace

const TrialLog* TrialLogs::find(const char* name) const {
  const auto it = std::find_if(logs.begin(), logs.end(), [name](const TrialLog& log) { return log.name == name; });
  return it == logs.end() ? nullptr : &*it;
}

bool TrialLogs::has(LineMeaning meaning) const {
  return std::any_of(logs.begin(), logs.end(), [meaning](const TrialLog& log) {
    return std::any_of(log.meanings.begin(), log.meanings.end(),
                       [meaning](const Meanings& line) { return line.has(meaning); });
  });
}

std::string TrialLogs::lines_of(LineMeaning meaning) const {
  std::string text;
  for (const TrialLog& log : logs) {
    for (size_t i = 0; i < log.lines.size(); ++i) {
      if (log.meanings[i].has(meaning)) text += log.lines[i] + "\n";
    }
  }
  return text;
}

TrialLogs read_trial_logs(const RunFacts& facts) {
  TrialLogs logs = read_lines(facts, {});
  find_meanings(facts, logs);
  return logs;
}

std::vector<std::optional<double>> printed_numbers(const TrialLogs& logs, const char* option,
                                                   const std::string& pattern, std::vector<std::string>& warnings) {
  std::vector<std::optional<double>> best;
  if (pattern.empty()) return best;
  const auto regex = compiled_number_pattern(option, pattern);
  for (const TrialLog& log : logs.logs) {
    if (log.rank.value_or(0) != 0 || log.is_cut) continue;
    std::vector<std::optional<double>> found = numbers_in(log.lines, *regex, option, warnings);
    if (log.rank && !found.empty()) return found;
    if (found.size() > best.size()) best = std::move(found);
  }
  return best;
}

PrintedMetric read_printed_metric(const RunFacts& facts, bool is_measured) {
  const TrialLogs logs = read_lines(facts, {kHarmlessOutputBytes, kHarmlessOutputBytes});
  std::vector<std::string> warnings;
  const auto numbers = printed_numbers(logs, "--metric-pattern", facts.metric_pattern, warnings);
  const ProfileWindow window{facts.start_profile_step, facts.end_profile_step};
  return printed_metric(numbers, warnings.empty() ? "" : warnings.front(), window, is_measured);
}

Shortage find_shortage(const TrialLogs& logs, bool on_processors) {
  Shortage shortage;
  for (const TrialLog& log : logs.logs) {
    add_shortages(log.lines, log.meanings, log.rank, on_processors, shortage);
  }
  return shortage;
}

}  // namespace dsat::host
