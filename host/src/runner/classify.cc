// A trial with a valid result file has completed, unless its batches were short. Without one, the reason is looked for
// in this order: printed shortages of memory, time limits, the engine's verdict, a printed "address in use", the
// kernel, the exit status.
#include "runner/classify.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/base/shell.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "outputs/flops_profiler_report.h"
#include "outputs/launcher_failure.h"
#include "outputs/log_lines.h"
#include "outputs/oom_numbers.h"
#include "outputs/pipeline_log.h"
#include "outputs/plausible.h"
#include "outputs/read_metrics.h"
#include "outputs/script_lines.h"
#include "outputs/script_signs.h"
#include "outputs/step_log.h"
#include "runner/probe.h"
#include "runner/trial_files.h"
#include "runner/trial_logs.h"

namespace dsat::host {

namespace {

constexpr size_t kShownLines = 20;
constexpr size_t kLongestReason = 300, kLongestLine = 2000;
constexpr size_t kMostWarnings = 20;
constexpr size_t kMaxFlopsReportBytes = size_t{16} << 20;  // the report has a line for each module of the model

// The logs of a trial, and the meanings of their lines.
struct Printed {
  TrialLogs logs;
  std::vector<std::vector<Meanings>> meanings;  // parallel to logs.logs

  explicit Printed(const RunFacts& facts) : logs(read_trial_logs(facts.trial_dir, facts.expects_rank_logs)) {
    const LineReader reader(facts.oom_patterns);
    for (TrialLog& log : logs.logs) take_off_hosts(facts.hosts, log.lines);
    const bool is_joined = prints_all_to_stdout();
    for (TrialLog& log : logs.logs) {
      if (is_joined && log.stream == LogStream::standard_output) log.stream = LogStream::both;
      meanings.push_back(reader.read(log.lines, log.stream));
      // The begin of a cut line is missing. It may have marked the line as quoted or as data, so the line counts for
      // nothing.
      if (log.is_cut && !log.lines.empty()) meanings.back().front() = {};
    }
  }
  bool has(LineMeaning meaning) const {
    return std::any_of(meanings.begin(), meanings.end(), [meaning](const std::vector<Meanings>& lines) {
      return std::any_of(lines.begin(), lines.end(), [meaning](const Meanings& line) { return line.has(meaning); });
    });
  }
  // Returns the lines with this meaning, joined.
  std::string lines_of(LineMeaning meaning) const {
    std::string text;
    for (size_t k = 0; k < meanings.size(); ++k) {
      for (size_t i = 0; i < meanings[k].size(); ++i) {
        if (meanings[k][i].has(meaning)) text += logs.logs[k].lines[i] + "\n";
      }
    }
    return text;
  }
  // Whether the command is `script 2>&1 | tee FILE`, so that the error is in standard output.
  bool prints_all_to_stdout() const {
    const TrialLog *out = find(kStdoutFile), *error = find(kStderrFile);
    const auto is_trace = [](const std::string& line) {
      return starts_with(without_prefixes(line), "Traceback (most recent call last)");
    };
    return out != nullptr && (error == nullptr || error->lines.empty()) &&
           std::any_of(out->lines.begin(), out->lines.end(), is_trace);
  }
  const TrialLog* find(const char* name) const {
    const auto it =
        std::find_if(logs.logs.begin(), logs.logs.end(), [name](const TrialLog& log) { return log.name == name; });
    return it == logs.logs.end() ? nullptr : &*it;
  }
};

// Returns the script's lines in standard error or, if they show no cause, in the log of a rank that shows one.
ScriptLines script_lines(const Printed& printed) {
  ScriptLines best;
  for (size_t i = 0; i < printed.logs.logs.size(); ++i) {
    const TrialLog& log = printed.logs.logs[i];
    if (log.stream == LogStream::standard_output) continue;
    ScriptLines own = script_lines_of(log.lines, printed.meanings[i]);
    if (own.lines.empty()) continue;
    if (best.lines.empty() || (own.tells_the_cause && !best.tells_the_cause)) best = std::move(own);
  }
  return best;
}

void keep_last_lines(const Printed& printed, TrialEnd& end) {
  ScriptLines own = script_lines(printed);
  if (own.lines.empty()) {  // the launcher's lines are better than nothing
    const TrialLog* log = printed.find(kStderrFile);
    if (log == nullptr || log->lines.empty()) return;
    own.lines = log->lines;
    own.last = own.lines.back();
  }
  end.last_line = own.last;
  const size_t skipped = own.lines.size() > kShownLines ? own.lines.size() - kShownLines : 0;
  end.tail.assign(own.lines.begin() + static_cast<std::ptrdiff_t>(skipped), own.lines.end());
}

// Whether a process was ended by SIGKILL, as the host, a shell, the deepspeed launcher and torchrun report it.
bool was_killed(const RunFacts& facts, const Printed& printed) {
  return facts.exit.signal == SIGKILL || facts.exit.code == 128 + SIGKILL || facts.exit.code == 256 - SIGKILL ||
         printed.has(LineMeaning::killed);
}

std::string how_it_ended(const RunFacts& facts) {
  const ExitStatus& exit = facts.exit;
  if (exit.signal != 0) return fmt::format("killed by signal {} ({})", exit.signal, strsignal(exit.signal));
  if (exit.code < 0) return "ended in an unknown way";
  // A shell returns 128 plus the signal. The deepspeed launcher passes on a rank's status, which is 256 minus the
  // signal.
  const int of_rank = facts.launcher == Launcher::deepspeed ? 256 - exit.code : exit.code - 128;
  const auto signals = {SIGABRT, SIGBUS, SIGKILL, SIGSEGV, SIGTERM};
  if (std::find(signals.begin(), signals.end(), of_rank) == signals.end()) {
    return fmt::format("exit status {}", exit.code);
  }
  return fmt::format("exit status {}: {} was killed by signal {} ({})", exit.code,
                     facts.launcher == Launcher::deepspeed ? "a rank" : "the command", of_rank, strsignal(of_rank));
}

std::string with_last_line(std::string text, const TrialEnd& end) {
  return end.last_line.empty() ? text : text + ": " + end.last_line;
}

// Returns a hint if a script imports this project's package and Python does not find it.
std::string where_the_package_lies(const RunFacts& facts, const TrialEnd& end) {
  if (end.last_line.find("No module named 'dsat'") == std::string::npos) return "";
  if (facts.python_package.empty()) return " (install dsat's package for Python: docs/python.md)";
  return fmt::format(" (add PYTHONPATH={})", shell_quote(facts.python_package.string()));
}

// Says what is missing in a script that ended with status 0 and wrote no result.
std::string what_it_lacks(const RunFacts& facts, const ProbeReport& probe) {
  if (facts.model_info) {
    const bool is_engines = !probe.engine_version.empty();
    return fmt::format(
        "the script ended without writing {}: it must run at least one forward pass with DeepSpeed's autotuning "
        "section in its configuration{}",
        kModelInfoFile, is_engines ? "" : "; a loop without DeepSpeed reports by dsat.StepTimer (docs/python.md)");
  }
  return fmt::format(
      "the script ended before the profile window did: end_profile_step is {}, so it must run at least {} optimizer "
      "steps (train longer, or lower --end-profile-step)",
      facts.end_profile_step, facts.end_profile_step + 1);
}

// In `python3 train.py 2>&1 | tee FILE` the status is tee's. If the script failed, an exception is the last printed
// line.
std::string too_short(const RunFacts& facts, const Printed& printed, const ProbeReport& probe) {
  const ScriptLines own = script_lines(printed);
  if (!own.is_after_a_traceback) return what_it_lacks(facts, probe);
  const std::string exception = shortened(own.last, kLongestReason);
  if (own.ends_with_it) return "the script ended with status 0 and without a result: " + exception;
  return fmt::format("{}; it had printed {}", what_it_lacks(facts, probe), exception);
}

// The first message of a shortage, and the bound on the peak that all such messages give together.
struct Shortage {
  std::string line;  // empty: no shortage
  std::optional<uint64_t> peak_above_bytes;
};

// Returns a message and the lines after it, because some messages have three more lines.
std::string with_next_lines(const std::vector<std::string>& lines, size_t at) {
  constexpr size_t kMore = 3;
  std::string text;
  for (size_t i = at; i < std::min(at + 1 + kMore, lines.size()); ++i) text += lines[i] + "\n";
  return text;
}

std::string shown_in(const TrialLog& log, const std::string& line) {
  const std::string text = shortened(line, kLongestReason);
  return log.rank ? fmt::format("rank {}: {}", *log.rank, text) : text;
}

Shortage find_shortage(const RunFacts& facts, const Printed& printed) {
  Shortage shortage;
  bool on_device = false;
  for (size_t k = 0; k < printed.logs.logs.size(); ++k) {
    const TrialLog& log = printed.logs.logs[k];
    for (size_t i = 0; i < log.lines.size(); ++i) {
      const Meanings& meanings = printed.meanings[k][i];
      if (!meanings.reports_out_of_memory()) continue;
      // A message of the device is more exact than a later message of the machine or a scheduler.
      const bool device = meanings.has(LineMeaning::device_memory);
      if (shortage.line.empty() || (device && !on_device)) shortage.line = shown_in(log, log.lines[i]);
      on_device = on_device || device;
      OomNumbers numbers = read_oom_numbers(with_next_lines(log.lines, i));
      if (!device && facts.on_processors && !numbers.allocated) numbers.allocated = 0;
      const std::optional<uint64_t> above = device || facts.on_processors ? peak_above_bytes(numbers) : std::nullopt;
      shortage.peak_above_bytes = std::max(shortage.peak_above_bytes, above);
    }
  }
  return shortage;
}

// A script that resumes from a checkpoint is beyond the window's start at its first step. A trial prints every step.
bool goes_on_from_checkpoint(const RunFacts& facts, const Printed& printed) {
  if (facts.model_info) return false;
  const std::vector<TrialLog>& logs = printed.logs.logs;
  return std::any_of(logs.begin(), logs.end(), [&facts](const TrialLog& log) {
    if (log.is_cut) return false;
    const StepLog steps = read_step_log(log.lines, false);
    return !steps.steps.empty() && steps.steps.begin()->first > facts.start_profile_step;
  });
}

// The number of the first step is left out. It differs between trials, and their failures must be equal.
std::string from_checkpoint(const RunFacts& facts) {
  return fmt::format(
      "the script resumes from a checkpoint beyond the start of the profile window (step {}): start it from step 0; if "
      "a trial saved the checkpoint, remove it and give each trial its own folder (--trial-cwd copy)",
      facts.start_profile_step);
}

// A script that passes the window without a result ends with status 0. If it skips the step that counts FLOPs, it ends
// in DeepSpeed's attempt to write them.
bool has_missed_the_window(const RunFacts& facts, const TrialEnd& end) {
  return facts.exit.code == 0 || end.last_line.find("has no attribute 'flops'") != std::string::npos;
}

std::string why_failed(const RunFacts& facts, const std::string& invalid, const Printed& printed,
                       const ProbeReport& probe, TrialEnd& end) {
  if (!invalid.empty()) return invalid;
  end.from_checkpoint = has_missed_the_window(facts, end) && goes_on_from_checkpoint(facts, printed);
  if (end.from_checkpoint) return fmt::format("{} ({})", from_checkpoint(facts), how_it_ended(facts));
  if (facts.exit.code == 0) return too_short(facts, printed, probe);
  const TrialLog* log = printed.find(kStderrFile);
  const std::string launcher = log != nullptr ? launcher_failure(log->lines) : "";
  if (!launcher.empty()) return fmt::format("{} ({})", launcher, how_it_ended(facts));
  return with_last_line(how_it_ended(facts), end) + where_the_package_lies(facts, end);
}

// Most tools print the port that was taken. If it is not the trial's MASTER_PORT, the script chose the port itself, and
// other trials want it too.
void explain_taken_port(const RunFacts& facts, const std::string& lines, TrialEnd& end) {
  static const re2::RE2 port_in_text(R"((?:\bport[:= ]+|[\]\d*]:|\blocalhost:|', ?)(\d{4,5})\b)");
  end.infrastructure = true;
  end.taken_port = TakenPort::unnamed;
  re2::StringPiece rest(lines);
  for (int port = 0; re2::RE2::FindAndConsume(&rest, port_in_text, &port) && end.taken_port != TakenPort::given;) {
    end.taken_port = port == facts.port || facts.port == 0 ? TakenPort::given : TakenPort::chosen;
  }
  end.reason = end.taken_port == TakenPort::chosen ? "another program had the port that the script chose"
                                                   : "another program had the trial's rendezvous port";
}

// Sets the outcome and reason of a trial without a valid result. `invalid`: what is wrong with the result file; empty:
// there is no such file.
void explain(const RunFacts& facts, const std::string& invalid, const Printed& printed, const ProbeReport& probe,
             TrialEnd& end) {
  const Shortage shortage = find_shortage(facts, printed);
  if (facts.stopped) {
    end.outcome = Outcome::stopped;
  } else if (!facts.not_started.empty()) {
    end.infrastructure = true;
    end.reason = facts.not_started;
  } else if (!shortage.line.empty()) {
    // This comes before the time limit: if one rank runs out of memory, the others often wait for it until they are
    // killed.
    end.outcome = Outcome::out_of_memory;
    end.reason = shortage.line;
    end.peak_above_bytes = shortage.peak_above_bytes;
  } else if (!facts.timed_out.empty()) {
    end.outcome = Outcome::timed_out;
    end.reason = facts.timed_out;
    if (goes_on_from_checkpoint(facts, printed)) end.reason += "; " + from_checkpoint(facts);
  } else if (facts.verdict) {
    end.outcome = facts.verdict->outcome;
    end.reason = facts.verdict->reason;
    end.infrastructure = facts.verdict->infrastructure;
  } else if (printed.has(LineMeaning::address_in_use)) {
    explain_taken_port(facts, printed.lines_of(LineMeaning::address_in_use), end);
  } else if (facts.kernel_oom_kills && was_killed(facts, printed)) {
    end.outcome = Outcome::out_of_memory;
    end.reason = "out of memory: killed by the kernel, host memory ran out";
  } else if (facts.exit.signal == SIGKILL) {  // by a person, a scheduler or the script; once may be chance
    end.infrastructure = true;
    end.reason = with_last_line(how_it_ended(facts) + ", and not by dsat-host", end);
  } else {
    end.reason = why_failed(facts, invalid, printed, probe, end);
  }
}

// Reads the trial's result; nullopt: there is none. Throws Error: it is not valid. Without a result file, the report of
// the flops profiler counts.
std::optional<TrialReport> read_result(const RunFacts& facts) {
  const char* file_name = facts.model_info ? kModelInfoFile : kMetricsFile;
  if (const FileText text = try_read_file(facts.trial_dir / file_name, kMaxResultBytes); text.ok()) {
    if (facts.model_info) return read_model_info(text.bytes, file_name);
    return read_metrics(text.bytes, file_name, facts.config);
  }
  if (!asks_for_flops_report(facts.config)) return std::nullopt;
  const FileText report = try_read_file(facts.trial_dir / kFlopsReportFile, kMaxFlopsReportBytes);
  if (!report.ok()) return std::nullopt;
  if (facts.model_info) return read_flops_model_info(report.bytes, kFlopsReportFile);
  return read_flops_report(report.bytes, kFlopsReportFile, facts.config);
}

// Says what is in the place of the result file: a folder that the script makes for its results, a pipe.
std::string problem_with(const std::filesystem::path& path, const char* name) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return "";
  const std::string what = std::filesystem::is_directory(status) ? " is a folder"
                           : !std::filesystem::is_regular_file(status)
                               ? " is no regular file"
                               : " cannot be read: " + try_read_file(path, kMaxResultBytes).problem;
  return fmt::format("{}{}: the script must write its result to the path that its configuration names", name, what);
}

void take_report(const RunFacts& facts, TrialReport report, TrialEnd& end) {
  end.outcome = Outcome::completed;
  end.metrics = std::move(report.metrics);
  end.left_out = std::move(report.left_out);
  end.peak_bytes = report.peak_bytes;
  if (end.peak_bytes) end.peak_source = kPeakOfMetrics;
  end.device_memory_bytes = report.device_memory_bytes;
  end.world_size = report.world_size;
  end.step = facts.model_info ? 0 : static_cast<uint64_t>(std::max(0, facts.end_profile_step));
  std::move(report.warnings.begin(), report.warnings.end(), std::back_inserter(end.warnings));
  if (!facts.timed_out.empty()) {
    end.warnings.push_back("wrote its result, then did not end: " + facts.timed_out);
  } else if (!facts.stopped && facts.exit.code > 0) {
    end.warnings.push_back(with_last_line("wrote its result, then ended with " + how_it_ended(facts), end));
  } else if (!facts.stopped && facts.exit.signal != 0) {
    end.warnings.push_back("wrote its result, then was " + how_it_ended(facts));
  }
}

// The pipeline engine writes no result file, so its log is read. Its script trains to its own end or to a time limit. A
// script that fails after the window has still failed.
std::optional<TrialReport> read_pipeline(const RunFacts& facts, const Printed& printed) {
  const bool trained = facts.exit.code == 0 || !facts.timed_out.empty();
  if (facts.model_info || facts.stopped || !trained || !find_shortage(facts, printed).line.empty()) return std::nullopt;
  for (const TrialLog& log : printed.logs.logs) {
    if (log.stream == LogStream::standard_error || log.rank.value_or(0) != 0) continue;
    const ProfileWindow window{facts.start_profile_step, facts.end_profile_step};
    if (auto report = read_pipeline_log(log.lines, window, facts.config)) return report;
  }
  return std::nullopt;
}

// Uses what DeepSpeed printed in rank 0, to standard output or to the rank's own file.
void use_log(const RunFacts& facts, const Printed& printed, TrialEnd& end) {
  if (facts.model_info || end.metrics.empty()) return;
  for (const TrialLog& log : printed.logs.logs) {
    if (log.stream == LogStream::standard_error || log.rank.value_or(0) != 0) continue;
    const StepLog steps = read_step_log(log.lines, log.is_cut);
    if (steps.steps.empty()) continue;
    if (!end.peak_bytes && steps.peak_bytes) {
      end.peak_bytes = steps.peak_bytes;
      end.peak_source = kPeakOfLog;
    }
    const ProfileWindow window{facts.start_profile_step, facts.end_profile_step};
    const std::string warning = use_logged_steps(steps, window, facts.config, end.metrics);
    if (!warning.empty()) end.warnings.push_back(warning);
    return;
  }
}

void add_script_signs(const RunFacts& facts, const Printed& printed, TrialEnd& end) {
  for (const TrialLog& log : printed.logs.logs) {
    end.engines = std::max(end.engines, count_engines(log.lines));
    if (!end.checkpoint_outside.empty()) continue;
    end.checkpoint_outside = checkpoint_folder_outside(log.lines, facts.cwd, facts.trial_dir);
  }
}

// A cause that was printed early in a long log is missed.
void warn_of_cut_logs(const Printed& printed, TrialEnd& end) {
  for (const TrialLog& log : printed.logs.logs) {
    if (!log.is_cut) continue;
    end.warnings.push_back(
        fmt::format("{} has {}: only its end was read", log.name, format_size(static_cast<double>(log.bytes))));
  }
}

// Returns what is known without the trial's files.
TrialEnd begin_end(const RunFacts& facts) {
  TrialEnd end;
  end.id = facts.id;
  end.attempt = facts.attempt;
  end.exit_code = facts.exit.code;
  end.term_signal = facts.exit.signal;
  end.ended_at = facts.ended_at;
  return end;
}

// The engine counts every batch as full, so if the data set is smaller than a batch, every metric is wrong.
bool take_short_batches(const RunFacts& facts, const ProbeReport& probe, TrialEnd& end) {
  if (facts.model_info || facts.stopped) return false;
  const auto micro_batch = config::number_at(facts.config, config::kMicroBatchKey).value_or(0);
  const auto accumulation = config::number_at(facts.config, config::kAccumulationKey).value_or(1);
  end.reason = why_batches_are_short(probe, static_cast<uint64_t>(micro_batch),
                                     static_cast<uint64_t>(facts.end_profile_step * accumulation));
  if (end.reason.empty()) return false;
  end.outcome = Outcome::failed;
  end.has_short_batches = true;
  add_to_end(probe, end);
  return true;
}

TrialEnd read_end(const RunFacts& facts) {
  TrialEnd end = begin_end(facts);
  const Printed printed(facts);
  const ProbeReport probe = read_probe(facts.trial_dir);
  end.warnings = printed.logs.notes;
  keep_last_lines(printed, end);
  add_script_signs(facts, printed, end);
  std::string invalid;
  try {
    std::optional<TrialReport> report = read_result(facts);
    if (!report) {
      const char* file_name = facts.model_info ? kModelInfoFile : kMetricsFile;
      invalid = problem_with(facts.trial_dir / file_name, file_name);
      if (invalid.empty()) report = read_pipeline(facts, printed);
    }
    if (report) {
      if (take_short_batches(facts, probe, end)) return end;
      take_report(facts, std::move(*report), end);
      add_to_end(probe, end);
      use_log(facts, printed, end);
      if (!facts.model_info) add_wall_throughput(facts.config, end.metrics);
      return end;
    }
  } catch (const Error& error) {
    invalid = error.what();
  }
  explain(facts, invalid, printed, probe, end);
  add_to_end(probe, end);
  if (end.outcome == Outcome::failed) warn_of_cut_logs(printed, end);
  return end;
}

// Long texts of a trial must not fill the journal or the terminal.
void shorten(TrialEnd& end) {
  end.reason = shortened(end.reason, kLongestLine);
  end.checkpoint_outside = shortened(end.checkpoint_outside, kLongestLine);
  end.last_line = shortened(end.last_line, kLongestLine);
  for (std::string& line : end.tail) line = shortened(line, kLongestLine);
  for (std::string& warning : end.warnings) warning = shortened(warning, kLongestLine);
  if (end.warnings.size() <= kMostWarnings) return;
  const size_t more = end.warnings.size() - kMostWarnings;
  end.warnings.resize(kMostWarnings);
  end.warnings.push_back(fmt::format("and {} more warnings", more));
}

}  // namespace

TrialEnd classify(const RunFacts& facts) {
  try {
    TrialEnd end = read_end(facts);
    if (!facts.abandoned.empty()) {
      end.warnings.push_back(fmt::format(
          "abandoned: {} cannot be ended; its slots stay in use until the kernel ends it", facts.abandoned));
    }
    shorten(end);
    return end;
  } catch (
      const std::exception& error) {  // out of memory, or a library's limit: a trial's files must not end the study
    TrialEnd end = begin_end(facts);
    end.outcome = facts.stopped ? Outcome::stopped : facts.timed_out.empty() ? Outcome::failed : Outcome::timed_out;
    end.reason = facts.timed_out.empty()
                     ? fmt::format("the trial's files cannot be read: {}", status_of(error).message())
                     : facts.timed_out;
    return end;
  }
}

}  // namespace dsat::host
