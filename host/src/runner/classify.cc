// A valid result file makes a trial completed. Without one, stderr, the time limits, the kernel and the exit status are
// asked in this order why there is none.
#include "runner/classify.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "dsat/base/files.h"
#include "dsat/base/utf8.h"
#include "runner/flops_profiler_report.h"
#include "runner/probe.h"
#include "runner/read_metrics.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

// Enough for the tracebacks of many ranks; the rank that ran out of memory is often not the last one to write.
constexpr size_t kSearchedBytes = 256 * 1024;
constexpr size_t kShownLines = 20;

bool contains_any(std::string_view text, std::initializer_list<std::string_view> needles) {
  return std::any_of(needles.begin(), needles.end(),
                     [text](std::string_view needle) { return text.find(needle) != std::string_view::npos; });
}

// Where a launcher begins its own account of the ranks that died, with times and process ids in it: it comes after the
// script's last words, and would make no two failures alike.
bool begins_epilogue(const std::string& line) {
  return contains_any(line,
                      {"launch.py:sigkill_handler", "exits with return code", "failed (exitcode", "ChildFailedError"});
}

// What else a launcher prints, at any time.
bool is_of_launcher(const std::string& line) {
  return contains_any(line, {"[launch.py:", "torch.distributed.elastic", "torch/distributed/elastic"});
}

void keep_last_lines(std::vector<std::string> lines, TrialEnd& end) {
  std::vector<std::string> own(lines.begin(), std::find_if(lines.begin(), lines.end(), begins_epilogue));
  own.erase(std::remove_if(own.begin(), own.end(), is_of_launcher), own.end());
  if (!own.empty()) lines = std::move(own);
  if (lines.empty()) return;
  end.last_line = lines.back();
  const size_t skipped = lines.size() > kShownLines ? lines.size() - kShownLines : 0;
  end.tail.assign(lines.begin() + static_cast<std::ptrdiff_t>(skipped), lines.end());
}

// SIGKILL as the host, a shell, the deepspeed launcher and torchrun report it.
bool was_killed(const RunFacts& facts, std::string_view stderr_text) {
  return facts.exit.signal == SIGKILL || facts.exit.code == 128 + SIGKILL || facts.exit.code == 256 - SIGKILL ||
         contains_any(stderr_text, {"return code = -9", "SIGKILL", "exitcode: -9", "\nKilled"});
}

std::string how_it_ended(const ExitStatus& exit) {
  if (exit.signal != 0) return fmt::format("killed by signal {} ({})", exit.signal, strsignal(exit.signal));
  if (exit.code < 0) return "ended in an unknown way";
  return fmt::format("exit status {}", exit.code);
}

std::string with_last_line(std::string text, const TrialEnd& end) {
  return end.last_line.empty() ? text : text + ": " + end.last_line;
}

// The script ended with status 0 and wrote nothing.
std::string too_short(const RunFacts& facts) {
  if (facts.model_info) {
    return fmt::format(
        "the script ended without writing {}: it must run at least one forward pass with DeepSpeed's autotuning "
        "section "
        "in its configuration",
        kModelInfoFile);
  }
  return fmt::format(
      "the script ended before the profile window did: end_profile_step is {}, so it must run at least {} optimizer "
      "steps (train longer, or lower --end-profile-step)",
      facts.end_profile_step, facts.end_profile_step + 1);
}

// The line with the amount that was wanted and the amount there was.
std::string out_of_memory_line(std::string_view stderr_text) {
  constexpr size_t kLongestReason = 300;
  for (const std::string& line : printable_lines(stderr_text)) {
    if (reports_out_of_memory("\n" + line)) return line.substr(0, kLongestReason);
  }
  return "out of memory";
}

// Why there is no valid result. `invalid` is what is wrong with the file; empty: there is none.
void explain(const RunFacts& facts, const std::string& invalid, std::string_view stderr_text, TrialEnd& end) {
  if (facts.stopped) {
    end.outcome = Outcome::stopped;
  } else if (reports_out_of_memory(stderr_text)) {
    // Before the time limit: when one rank runs out of memory the others often wait for it until they are killed.
    end.outcome = Outcome::out_of_memory;
    end.reason = out_of_memory_line(stderr_text);
  } else if (!facts.timed_out.empty()) {
    end.outcome = Outcome::timed_out;
    end.reason = facts.timed_out;
  } else if (reports_address_in_use(stderr_text)) {
    end.infrastructure = true;
    end.reason = "its rendezvous port was taken by another program";
  } else if (facts.kernel_oom_kills && was_killed(facts, stderr_text)) {
    end.outcome = Outcome::out_of_memory;
    end.reason = "out of memory: killed by the kernel, host memory ran out";
  } else if (!invalid.empty()) {
    end.reason = invalid;
  } else if (facts.exit.code == 0) {
    end.reason = too_short(facts);
  } else {
    end.reason = with_last_line(how_it_ended(facts.exit), end);
  }
}

// The result that the trial wrote; nullopt: none. Throws Error: it is not valid. The flops profiler's report counts
// where the protocol's file is not there.
std::optional<TrialReport> read_result(const RunFacts& facts) {
  const char* file_name = facts.model_info ? kModelInfoFile : kMetricsFile;
  if (const FileText text = try_read_file(facts.trial_dir / file_name); text.ok()) {
    if (facts.model_info) return read_model_info(text.bytes, file_name);
    return read_metrics(text.bytes, file_name, facts.config);
  }
  if (!asks_for_flops_report(facts.config)) return std::nullopt;
  const FileText report = try_read_file(facts.trial_dir / kFlopsReportFile);
  if (!report.ok()) return std::nullopt;
  if (facts.model_info) return read_flops_model_info(report.bytes, kFlopsReportFile);
  return read_flops_report(report.bytes, kFlopsReportFile, facts.config);
}

// What stands in the place of the result file and is none: a folder that the script makes for its results, a pipe.
std::string problem_with(const std::filesystem::path& path, const char* name) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return "";
  const std::string what = std::filesystem::is_directory(status)      ? " is a folder"
                           : std::filesystem::is_regular_file(status) ? " cannot be read"
                                                                      : " is no regular file";
  return fmt::format("{}{}: the script must write its result to the path that its configuration names", name, what);
}

void take_report(const RunFacts& facts, TrialReport report, TrialEnd& end) {
  end.outcome = Outcome::completed;
  end.metrics = std::move(report.metrics);
  end.peak_bytes = report.peak_bytes;
  if (end.peak_bytes) end.peak_source = kPeakOfMetrics;
  end.device_memory_bytes = report.device_memory_bytes;
  end.world_size = report.world_size;
  end.step = facts.model_info ? 0 : static_cast<uint64_t>(std::max(0, facts.end_profile_step));
  end.warnings = std::move(report.warnings);
  if (!facts.timed_out.empty()) {
    end.warnings.push_back("wrote its result, then did not end: " + facts.timed_out);
  } else if (!facts.stopped && facts.exit.code > 0) {
    end.warnings.push_back(with_last_line("wrote its result, then ended with " + how_it_ended(facts.exit), end));
  } else if (!facts.stopped && facts.exit.signal != 0) {
    end.warnings.push_back("wrote its result, then was " + how_it_ended(facts.exit));
  }
}

}  // namespace

bool reports_out_of_memory(std::string_view text) {
  return contains_any(
      text,
      {"OutOfMemoryError",  // torch.cuda., torch., c10::
       "CUDA out of memory", "HIP out of memory", "XPU out of memory", "out of memory. Tried to allocate",
       "CUDA error: out of memory", "CUDA driver error: out of memory", "HIP error: out of memory",
       "cuda runtime error (2) : out of memory", "cudaErrorMemoryAllocation", "hipErrorOutOfMemory",
       "CUBLAS_STATUS_ALLOC_FAILED", "HIPBLAS_STATUS_ALLOC_FAILED", "can't allocate memory: you tried to allocate",
       "not enough memory: you tried to allocate", "std::bad_alloc", "\nMemoryError"});
}

bool reports_address_in_use(std::string_view text) {
  return contains_any(text, {"EADDRINUSE", "Address already in use", "address already in use"});
}

TrialEnd classify(const RunFacts& facts) {
  TrialEnd end;
  end.id = facts.id;
  end.attempt = facts.attempt;
  end.exit_code = facts.exit.code;
  end.term_signal = facts.exit.signal;
  end.ended_at = facts.ended_at;
  const std::string stderr_text = read_tail(facts.trial_dir / kStderrFile, kSearchedBytes);
  keep_last_lines(printable_lines(stderr_text), end);

  std::string invalid;
  try {
    if (std::optional<TrialReport> report = read_result(facts)) {
      take_report(facts, std::move(*report), end);
      add_to_end(read_probe(facts.trial_dir), end);
      return end;
    }
    const char* file_name = facts.model_info ? kModelInfoFile : kMetricsFile;
    invalid = problem_with(facts.trial_dir / file_name, file_name);
  } catch (const Error& error) {
    invalid = error.what();
  }
  explain(facts, invalid, "\n" + stderr_text, end);
  add_to_end(read_probe(facts.trial_dir), end);
  return end;
}

}  // namespace dsat::host
