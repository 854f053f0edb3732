#include "runner/classify.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "base/printable_text.h"
#include "runner/flops_profiler_report.h"
#include "runner/read_metrics.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

// Enough for the tracebacks of many ranks; the one that ran out of memory is often not the last to speak.
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

// What else a launcher says, at any time.
bool is_launchers(const std::string& line) {
  return contains_any(line, {"[launch.py:", "torch.distributed.elastic", "torch/distributed/elastic"});
}

void keep_last_lines(std::vector<std::string> lines, TrialEnd& end) {
  std::vector<std::string> own(lines.begin(), std::find_if(lines.begin(), lines.end(), begins_epilogue));
  own.erase(std::remove_if(own.begin(), own.end(), is_launchers), own.end());
  if (!own.empty()) lines = std::move(own);
  if (lines.empty()) return;
  end.last_line = lines.back();
  const size_t skipped = lines.size() > kShownLines ? lines.size() - kShownLines : 0;
  end.tail.assign(lines.begin() + static_cast<std::ptrdiff_t>(skipped), lines.end());
}

// SIGKILL as the host, a shell, the deepspeed launcher and torchrun report it.
bool was_killed(const Evidence& evidence, std::string_view stderr_text) {
  return evidence.exit.signal == SIGKILL || evidence.exit.code == 128 + SIGKILL ||
         evidence.exit.code == 256 - SIGKILL ||
         contains_any(stderr_text, {"return code = -9", "SIGKILL", "exitcode: -9", "\nKilled"});
}

std::string how_it_ended(const ExitStatus& exit) {
  if (exit.signal != 0) return "killed by signal " + std::to_string(exit.signal) + " (" + strsignal(exit.signal) + ")";
  if (exit.code < 0) return "ended in an unknown way";
  return "exit status " + std::to_string(exit.code);
}

std::string with_last_line(std::string text, const TrialEnd& end) {
  return end.last_line.empty() ? text : text + ": " + end.last_line;
}

// The script ended in peace and wrote nothing.
std::string too_short(const Evidence& evidence) {
  if (evidence.model_info) {
    return "the script ended without writing " + std::string(kModelInfoFile) +
           ": it must run at least one forward pass with DeepSpeed's autotuning section in its configuration";
  }
  return "the script ended before the profile window did: end_profile_step is " +
         std::to_string(evidence.end_profile_step) + ", so it must run at least " +
         std::to_string(evidence.end_profile_step + 1) + " optimizer steps (train longer, or lower --end-profile-step)";
}

// The line that says how much was wanted and how much there was.
std::string out_of_memory_line(std::string_view stderr_text) {
  constexpr size_t kLongestReason = 300;
  for (const std::string& line : printable_lines(stderr_text)) {
    if (says_out_of_memory("\n" + line)) return line.substr(0, kLongestReason);
  }
  return "out of memory";
}

// Why there is no valid result. `invalid` says what is wrong with the file; empty: there is none.
void explain(const Evidence& evidence, const std::string& invalid, std::string_view stderr_text, TrialEnd& end) {
  if (evidence.stopped) {
    end.outcome = Outcome::stopped;
  } else if (says_out_of_memory(stderr_text)) {
    // Before the time limit: when one rank runs out of memory the others often wait for it until they are killed.
    end.outcome = Outcome::out_of_memory;
    end.reason = out_of_memory_line(stderr_text);
  } else if (!evidence.timed_out.empty()) {
    end.outcome = Outcome::timed_out;
    end.reason = evidence.timed_out;
  } else if (says_address_in_use(stderr_text)) {
    end.infrastructure = true;
    end.reason = "its rendezvous port was taken by another program";
  } else if (evidence.kernel_oom_kills && was_killed(evidence, stderr_text)) {
    end.outcome = Outcome::out_of_memory;
    end.reason = "out of memory: killed by the kernel, host memory ran out";
  } else if (!invalid.empty()) {
    end.reason = invalid;
  } else if (evidence.exit.code == 0) {
    end.reason = too_short(evidence);
  } else {
    end.reason = with_last_line(how_it_ended(evidence.exit), end);
  }
}

// What the trial wrote of itself; nullopt: nothing. The flops profiler's report counts where the protocol's file is
// not there.
std::optional<Result<TrialReport>> read_result(const Evidence& evidence) {
  const char* file_name = evidence.model_info ? kModelInfoFile : kMetricsFile;
  if (const auto text = read_file(evidence.trial_dir / file_name)) {
    if (evidence.model_info) return read_model_info(*text, file_name);
    return read_metrics(*text, file_name, evidence.config);
  }
  if (!asks_for_flops_report(evidence.config)) return std::nullopt;
  const auto report = read_file(evidence.trial_dir / kFlopsReportFile);
  if (!report) return std::nullopt;
  if (evidence.model_info) return read_flops_model_info(*report, kFlopsReportFile);
  return read_flops_report(*report, kFlopsReportFile, evidence.config);
}

// Something is there that is no file: a folder that the script makes for its results, a pipe.
std::string odd_file(const std::filesystem::path& path, const char* name) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return "";
  const std::string what = std::filesystem::is_directory(status)      ? " is a folder"
                           : std::filesystem::is_regular_file(status) ? " cannot be read"
                                                                      : " is no regular file";
  return name + what + ": the script must write its result to the path that its configuration names";
}

void take_report(const Evidence& evidence, TrialReport report, TrialEnd& end) {
  end.outcome = Outcome::completed;
  end.metrics = std::move(report.metrics);
  end.peak_bytes = report.peak_bytes;
  end.device_memory_bytes = report.device_memory_bytes;
  end.world_size = report.world_size;
  end.step = evidence.model_info ? 0 : static_cast<uint64_t>(std::max(0, evidence.end_profile_step));
  end.warnings = std::move(report.warnings);
  if (!evidence.timed_out.empty()) {
    end.warnings.push_back("wrote its result, then did not end: " + evidence.timed_out);
  } else if (!evidence.stopped && evidence.exit.code > 0) {
    end.warnings.push_back(with_last_line("wrote its result, then ended with " + how_it_ended(evidence.exit), end));
  } else if (!evidence.stopped && evidence.exit.signal != 0) {
    end.warnings.push_back("wrote its result, then was " + how_it_ended(evidence.exit));
  }
}

}  // namespace

bool says_out_of_memory(std::string_view text) {
  return contains_any(
      text,
      {"OutOfMemoryError",  // torch.cuda., torch., c10::
       "CUDA out of memory", "HIP out of memory", "XPU out of memory", "out of memory. Tried to allocate",
       "CUDA error: out of memory", "CUDA driver error: out of memory", "HIP error: out of memory",
       "cuda runtime error (2) : out of memory", "cudaErrorMemoryAllocation", "hipErrorOutOfMemory",
       "CUBLAS_STATUS_ALLOC_FAILED", "HIPBLAS_STATUS_ALLOC_FAILED", "can't allocate memory: you tried to allocate",
       "not enough memory: you tried to allocate", "std::bad_alloc", "\nMemoryError"});
}

bool says_address_in_use(std::string_view text) {
  return contains_any(text, {"EADDRINUSE", "Address already in use", "address already in use"});
}

TrialEnd classify(const Evidence& evidence) {
  TrialEnd end;
  end.id = evidence.id;
  end.attempt = evidence.attempt;
  end.exit_code = evidence.exit.code;
  end.term_signal = evidence.exit.signal;
  end.ended_at = evidence.ended_at;
  const std::string stderr_text = read_tail(evidence.trial_dir / kStderrFile, kSearchedBytes);
  keep_last_lines(printable_lines(stderr_text), end);

  std::string invalid;
  if (auto report = read_result(evidence)) {
    if (report->ok()) {
      take_report(evidence, std::move(*report).value(), end);
      return end;
    }
    invalid = report->status().message();
  } else {
    const char* file_name = evidence.model_info ? kModelInfoFile : kMetricsFile;
    invalid = odd_file(evidence.trial_dir / file_name, file_name);
  }
  explain(evidence, invalid, "\n" + stderr_text, end);
  return end;
}

}  // namespace dsat::host
