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
#include "dsat/base/files.h"
#include "dsat/base/shell.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "outputs/as_asked.h"
#include "outputs/batch_assertion.h"
#include "outputs/curve.h"
#include "outputs/flops_profiler_report.h"
#include "outputs/launcher_failure.h"
#include "outputs/pipeline_log.h"
#include "outputs/plausible.h"
#include "outputs/probe_report.h"
#include "outputs/read_metrics.h"
#include "outputs/script_lines.h"
#include "outputs/script_signs.h"
#include "outputs/shortage.h"
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

// Returns the script's lines in standard error or, if they show no cause, in the log of a rank that shows one. Standard
// output counts if there are no such lines: a script may print its own exception there.
ScriptLines script_lines(const TrialLogs& logs) {
  ScriptLines best;
  for (const TrialLog& log : logs.logs) {
    const bool is_output = log.stream == LogStream::standard_output;
    if (is_output && !best.lines.empty()) continue;
    ScriptLines own = script_lines_of(log.lines, log.meanings);
    if (own.lines.empty() || (is_output && !own.is_after_a_traceback)) continue;
    if (best.lines.empty() || (own.tells_the_cause && !best.tells_the_cause)) best = std::move(own);
  }
  return best;
}

void keep_last_lines(const TrialLogs& logs, const std::optional<RankEnd>& rank_end, TrialEnd& end) {
  ScriptLines own = script_lines(logs);
  if (own.lines.empty()) {  // the launcher's lines are better than nothing
    const TrialLog* log = logs.find(kStderrFile);
    if (log == nullptr || log->lines.empty()) return;
    own.lines = log->lines;
    if (!rank_end) own.last = own.lines.back();
  }
  end.last_line = own.last;
  const size_t skipped = own.lines.size() > kShownLines ? own.lines.size() - kShownLines : 0;
  end.tail.assign(own.lines.begin() + static_cast<std::ptrdiff_t>(skipped), own.lines.end());
}

// Returns the end of the rank that failed first, as the launcher reports it.
std::optional<RankEnd> find_rank_end(const TrialLogs& logs) {
  for (const TrialLog& log : logs.logs) {
    if (const auto end = first_rank_end(log.lines)) return end;
  }
  return std::nullopt;
}

// The facts of a trial with what its logs show.
struct Seen {
  const RunFacts& facts;
  TrialLogs logs;
  std::optional<RankEnd> rank_end = find_rank_end(logs);
  Shortage shortage = find_shortage(logs, facts.on_processors);
  ProbeReport probe = read_probe(facts.trial_dir);
};

// Whether a process was ended by SIGKILL, as the host, a shell, the deepspeed launcher and torchrun report it.
bool was_killed(const Seen& seen) {
  const ExitStatus& exit = seen.facts.exit;
  return exit.signal == SIGKILL || exit.code == 128 + SIGKILL || exit.code == 256 - SIGKILL ||
         seen.logs.has(LineMeaning::killed);
}

std::string by_signal(int signal) { return fmt::format("killed by signal {} ({})", signal, strsignal(signal)); }

std::string how_rank_ended(const RankEnd& end) {
  const std::string rank = end.rank ? fmt::format("rank {}", *end.rank) : "a rank";
  return end.code < 0 ? fmt::format("{} was {}", rank, by_signal(-end.code))
                      : fmt::format("{} ended with status {}", rank, end.code);
}

std::string how_it_ended(const Seen& seen) {
  const ExitStatus& exit = seen.facts.exit;
  if (exit.signal != 0) return by_signal(exit.signal);
  if (exit.code < 0) return "ended in an unknown way";
  if (seen.rank_end && exit.code != 0 && seen.rank_end->code != exit.code) {
    return fmt::format("exit status {}: {}", exit.code, how_rank_ended(*seen.rank_end));
  }
  // A shell returns 128 plus the signal. The deepspeed launcher passes on a rank's status, which is 256 minus the
  // signal.
  const bool is_deepspeeds = seen.facts.launcher == Launcher::deepspeed;
  const int of_rank = is_deepspeeds ? 256 - exit.code : exit.code - 128;
  const auto signals = {SIGABRT, SIGBUS, SIGKILL, SIGSEGV, SIGTERM};
  if (std::find(signals.begin(), signals.end(), of_rank) == signals.end()) {
    return fmt::format("exit status {}", exit.code);
  }
  return fmt::format("exit status {}: {} was {}", exit.code, is_deepspeeds ? "a rank" : "the command",
                     by_signal(of_rank));
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
std::string too_short(const Seen& seen) {
  const ScriptLines own = script_lines(seen.logs);
  if (!own.is_after_a_traceback) return what_it_lacks(seen.facts, seen.probe);
  const std::string exception = shortened(own.last, kLongestReason);
  if (own.ends_with_it) return "the script ended with status 0 and without a result: " + exception;
  return fmt::format("{}; it had printed {}", what_it_lacks(seen.facts, seen.probe), exception);
}

// A script that resumes from a checkpoint is beyond the window's start at its first step. A trial prints every step.
bool goes_on_from_checkpoint(const Seen& seen) {
  if (seen.facts.model_info) return false;
  const std::vector<TrialLog>& logs = seen.logs.logs;
  return std::any_of(logs.begin(), logs.end(), [&](const TrialLog& log) {
    if (log.is_cut) return false;
    const StepLog steps = read_step_log(log.lines, false);
    return !steps.steps.empty() && steps.steps.begin()->first > seen.facts.start_profile_step;
  });
}

// The number of the first step is left out. It differs between trials, and their failures must be equal.
std::string from_checkpoint(const RunFacts& facts) {
  return fmt::format(
      "the script resumes from a checkpoint beyond the start of the profile window (step {}): start it from step 0; if "
      "a trial saved the checkpoint, remove it and give each trial its own folder (--trial-cwd copy; where the path is "
      "absolute, {{trial_dir}} in COMMAND)",
      facts.start_profile_step);
}

// A script that passes the window without a result ends with status 0. If it skips the step that counts FLOPs, it ends
// in DeepSpeed's attempt to write them.
bool has_missed_the_window(const RunFacts& facts, const TrialEnd& end) {
  return facts.exit.code == 0 || end.last_line.find("has no attribute 'flops'") != std::string::npos;
}

std::string why_failed(const Seen& seen, const std::string& invalid, TrialEnd& end) {
  if (!invalid.empty()) return invalid;
  const RunFacts& facts = seen.facts;
  end.from_checkpoint = has_missed_the_window(facts, end) && goes_on_from_checkpoint(seen);
  if (end.from_checkpoint) return fmt::format("{} ({})", from_checkpoint(facts), how_it_ended(seen));
  const TrialLog* log = seen.logs.find(kStderrFile);
  if (std::string why = log != nullptr ? not_injected(log->lines) : ""; !why.empty()) return why;
  if (facts.exit.code == 0) return too_short(seen);
  const std::string launcher = log != nullptr ? launcher_failure(log->lines) : "";
  if (!launcher.empty()) return fmt::format("{} ({})", launcher, how_it_ended(seen));
  return with_last_line(how_it_ended(seen), end) + where_the_package_lies(facts, end) +
         explain_batch_assertion(end.last_line, facts.config);
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

// Once may be chance: a person, a scheduler or the script killed the command, or a rank of it.
bool was_killed_by_others(const Seen& seen) {
  return seen.facts.exit.signal == SIGKILL || (seen.rank_end && seen.rank_end->code == -SIGKILL);
}

// A shortage of memory comes before the time limit: if one rank runs out of memory, the others often wait for it until
// they are killed.
void explain_shortage(const Shortage& shortage, TrialEnd& end) {
  const bool depends_on_batch = shortage.memory != LineMeaning::pinned_memory;
  end.outcome = depends_on_batch ? Outcome::out_of_memory : Outcome::failed;
  end.reason = describe(shortage);
  end.peak_above_bytes = shortage.peak_above_bytes;
  end.infrastructure = shortage.is_refused_in_plenty;
}

// Sets the outcome and reason of a trial without a valid result. `invalid`: what is wrong with the result file; empty:
// there is no such file.
void explain(const Seen& seen, const std::string& invalid, TrialEnd& end) {
  const RunFacts& facts = seen.facts;
  if (facts.stopped) {
    end.outcome = Outcome::stopped;
  } else if (!facts.not_started.empty()) {
    end.infrastructure = true;
    end.reason = facts.not_started;
  } else if (seen.shortage.is_there()) {
    explain_shortage(seen.shortage, end);
  } else if (!facts.timed_out.empty()) {
    end.outcome = Outcome::timed_out;
    end.reason = facts.timed_out;
    if (goes_on_from_checkpoint(seen)) end.reason += "; " + from_checkpoint(facts);
  } else if (facts.verdict) {
    end.outcome = facts.verdict->outcome;
    end.reason = facts.verdict->reason;
    end.infrastructure = facts.verdict->infrastructure;
  } else if (seen.logs.has(LineMeaning::address_in_use)) {
    explain_taken_port(facts, seen.logs.lines_of(LineMeaning::address_in_use), end);
  } else if (facts.kernel_oom_kills && was_killed(seen)) {
    end.outcome = Outcome::out_of_memory;
    end.reason = "out of memory: killed by the kernel, host memory ran out";
  } else if (was_killed_by_others(seen)) {
    end.infrastructure = true;
    end.reason = with_last_line(how_it_ended(seen) + ", and not by dsat-host", end);
  } else {
    end.reason = why_failed(seen, invalid, end);
  }
  // The kernel and schedulers count the machine's memory only.
  const bool is_devices = seen.shortage.memory == LineMeaning::device_memory;
  end.of_host = end.outcome == Outcome::out_of_memory && !is_devices && !facts.on_processors;
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

// A script that catches the exception and goes on measures something else, such as steps that it left out.
void warn_of_shortage(const Seen& seen, TrialEnd& end) {
  if (seen.facts.model_info || !seen.shortage.is_there() || seen.shortage.memory == LineMeaning::pinned_memory) return;
  end.ran_short = true;
  if (seen.facts.exit.code != 0) return;  // the warning of its end has the message
  end.warnings.push_back(fmt::format(
      "memory ran out, the script went on, and its result may be of less work: it becomes the best only if no other "
      "trial measured: {}",
      describe(seen.shortage)));
}

void take_report(const Seen& seen, TrialReport report, TrialEnd& end) {
  const RunFacts& facts = seen.facts;
  end.outcome = Outcome::completed;
  end.metrics = std::move(report.metrics);
  end.left_out = std::move(report.left_out);
  end.peak_bytes = report.peak_bytes;
  if (end.peak_bytes) end.peak_source = kPeakOfMetrics;
  end.device_memory_bytes = report.device_memory_bytes;
  end.world_size = report.world_size;
  end.step = facts.model_info ? 0 : static_cast<uint64_t>(std::max(0, facts.end_profile_step));
  std::move(report.warnings.begin(), report.warnings.end(), std::back_inserter(end.warnings));
  warn_of_shortage(seen, end);
  if (facts.window_is_full) return;
  if (!facts.timed_out.empty()) {
    end.warnings.push_back("wrote its result, then did not end: " + facts.timed_out);
  } else if (!facts.stopped && facts.exit.code > 0) {
    end.warnings.push_back(with_last_line("wrote its result, then ended with " + how_it_ended(seen), end));
  } else if (!facts.stopped && facts.exit.signal != 0) {
    end.warnings.push_back("wrote its result, then was " + how_it_ended(seen));
  }
}

// The pipeline engine writes no result file, so its log is read. Its script trains to its own end or to a time limit. A
// script that fails after the window has still failed.
std::optional<TrialReport> read_pipeline(const Seen& seen) {
  const RunFacts& facts = seen.facts;
  const bool trained = facts.exit.code == 0 || !facts.timed_out.empty();
  if (facts.model_info || facts.stopped || !trained || seen.shortage.is_there()) return std::nullopt;
  for (const TrialLog& log : seen.logs.logs) {
    if (log.stream == LogStream::standard_error || log.rank.value_or(0) != 0) continue;
    const ProfileWindow window{facts.start_profile_step, facts.end_profile_step};
    if (auto report = read_pipeline_log(log.lines, window, facts.config)) return report;
  }
  return std::nullopt;
}

// Uses what DeepSpeed printed in rank 0, to standard output or to the rank's own file.
void use_log(const RunFacts& facts, const TrialLogs& logs, TrialEnd& end) {
  if (facts.model_info || end.metrics.empty()) return;
  for (const TrialLog& log : logs.logs) {
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

// The user's patterns come first, then what the script itself wrote, then what the hook saw.
Curve read_curve(const Seen& seen, std::vector<std::string>& warnings) {
  const RunFacts& facts = seen.facts;
  Curve curve{printed_numbers(seen.logs, "--loss-pattern", facts.loss_pattern, warnings),
              printed_numbers(seen.logs, "--grad-norm-pattern", facts.grad_norm_pattern, warnings)};
  for (const std::filesystem::path& file :
       {facts.trial_dir / kMetricsFile, facts.trial_dir / kProbeFolder / kStepsFile}) {
    if (!curve.losses.empty() && !curve.grad_norms.empty()) break;
    Curve written = read_curve_file(file, warnings);
    if (curve.losses.empty()) curve.losses = std::move(written.losses);
    if (curve.grad_norms.empty()) curve.grad_norms = std::move(written.grad_norms);
  }
  return curve;
}

void add_script_signs(const Seen& seen, TrialEnd& end) {
  end.checkpoint_outside = if_outside(seen.probe.checkpoint, seen.facts.trial_dir);
  for (const TrialLog& log : seen.logs.logs) {
    end.engines = std::max(end.engines, count_engines(log.lines));
    if (!end.checkpoint_outside.empty()) continue;
    end.checkpoint_outside = checkpoint_folder_outside(log.lines, seen.facts.cwd, seen.facts.trial_dir);
  }
}

// A cause that was printed early in a long log is missed.
void warn_of_cut_logs(const TrialLogs& logs, TrialEnd& end) {
  for (const TrialLog& log : logs.logs) {
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

// The figures are computed from the configuration. If the trial ran something else, or its data set is smaller than a
// batch, they are wrong.
bool take_other_than_asked(const RunFacts& facts, const ProbeReport& probe, TrialEnd& end) {
  if (facts.model_info || facts.stopped || !facts.has_configuration) return false;
  end.inputs = inputs_seen(probe);
  end.deviation = find_deviation(facts.config, probe, facts.end_profile_step);
  if (!end.deviation) return false;
  end.reason = describe(*end.deviation);
  end.outcome = Outcome::failed;
  add_to_end(probe, end);
  return true;
}

// A trial without the metric has no result. If it failed by itself, its own reason says more.
void add_printed_metric(const RunFacts& facts, std::optional<TrialReport>& report) {
  const PrintedMetric printed = read_printed_metric(facts, report.has_value());
  if (!printed.value) {
    if (report || facts.window_is_full || facts.exit.code == 0) throw Error(printed.problem);
    return;
  }
  if (!report) report.emplace().metrics = Json::object();
  report->metrics[kPrintedMetric] = *printed.value;
}

TrialEnd read_end(const RunFacts& facts) {
  TrialEnd end = begin_end(facts);
  const Seen seen{facts, read_trial_logs(facts)};
  const TrialLogs& logs = seen.logs;
  end.warnings = logs.notes;
  keep_last_lines(logs, seen.rank_end, end);
  add_script_signs(seen, end);
  std::string invalid;
  try {
    std::optional<TrialReport> report = read_result(facts);
    if (!report) {
      const char* file_name = facts.model_info ? kModelInfoFile : kMetricsFile;
      invalid = problem_with(facts.trial_dir / file_name, file_name);
      if (invalid.empty()) report = read_pipeline(seen);
    }
    if (!facts.metric_pattern.empty() && !facts.model_info) add_printed_metric(facts, report);
    if (report) {
      if (take_other_than_asked(facts, seen.probe, end)) return end;
      take_report(seen, std::move(*report), end);
      add_to_end(seen.probe, end);
      use_log(facts, logs, end);
      if (facts.model_info) return end;
      add_wall_throughput(facts.config, end.metrics);
      end.curve = read_curve(seen, end.warnings);
      return end;
    }
  } catch (const Error& error) {
    invalid = error.what();
  }
  explain(seen, invalid, end);
  add_to_end(seen.probe, end);
  if (end.outcome == Outcome::failed) warn_of_cut_logs(logs, end);
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
