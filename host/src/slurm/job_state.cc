// Tables of Slurm's states, reasons to wait and refusals. job_engine.cc decides what follows from them for a trial.
#include "slurm/job_state.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "dsat/base/numbers.h"
#include "dsat/base/utf8.h"

namespace dsat::host {

namespace {

template <size_t N>
bool is_one_of(const std::string& text, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

template <size_t N>
bool has_one_of(const std::string& text, const std::array<std::string_view, N>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

constexpr std::array<std::string_view, 8> kWaiting{"PENDING",   "CONFIGURING",  "REQUEUED",     "REQUEUE_FED",
                                                   "SUSPENDED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
constexpr std::array<std::string_view, 6> kRunning{"RUNNING",   "COMPLETING", "STAGE_OUT",
                                                   "SIGNALING", "STOPPED",    "RESIZING"};

// Reasons that waiting does not remove.
constexpr std::array<std::string_view, 10> kNever{"PartitionTimeLimit",
                                                  "InvalidAccount",
                                                  "InvalidQOS",
                                                  "AccountNotAllowed",
                                                  "QOSNotAllowed",
                                                  "DependencyNeverSatisfied",
                                                  "JobHeldUser",
                                                  "JobHeldAdmin",
                                                  "launch_failed_requeued_held",
                                                  "job_requeued_in_held_state"};
// Reasons for a request that does not fit the cluster. Slurm also gives them while nodes are down or drained.
constexpr std::array<std::string_view, 4> kNeverYet{"BadConstraints", "PartitionNodeLimit", "PartitionInactive",
                                                    "FrontEndDown"};
// Limits of a single job, "QOSMaxNodePerJobLimit", "AssocMaxWallDurationPerJobLimit", and budgets that are used up.
constexpr std::array<std::string_view, 3> kNeverPart{"PerJob", "GrpCPUMinutesLimit", "GrpBillingMinutes"};

constexpr std::array<std::string_view, 4> kMemoryKill{"oom-kill event", "oom_kill event", "Out Of Memory",
                                                      "exceeded memory limit"};

constexpr std::array<std::string_view, 15> kPassing{"nable to contact slurm controller",
                                                    "imed out",
                                                    "Connection refused",
                                                    "temporarily",
                                                    "Socket",
                                                    "socket",
                                                    "submit limit",
                                                    "SubmitJob",
                                                    "accounting/QOS policy",
                                                    "Zero Bytes",
                                                    "Communication connection failure",
                                                    "Requested nodes are busy",
                                                    "Transport endpoint",
                                                    "not available (inactive or drain)",
                                                    "slurm_receive_msg"};

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (size_t start = 0; start <= line.size();) {
    const size_t end = std::min(line.find('|', start), line.size());
    fields.push_back(trimmed(std::string_view(line).substr(start, end - start)));
    start = end + 1;
  }
  return fields;
}

}  // namespace

std::string job_format() { return "JobID:|,State:|,Reason:|,exit_code:|,RestartCnt:|,NodeList:|,Name:|"; }

std::vector<JobState> parse_jobs(const std::string& text) {
  std::vector<JobState> jobs;
  for (const std::string& line : printable_lines(text)) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() < 7 || fields[0].empty()) continue;
    JobState job;
    job.id = fields[0];
    job.state = fields[1];
    job.reason = fields[2];
    job.wait_status = parse_count(fields[3]).value_or(0);
    job.restarts = parse_count(fields[4]).value_or(0);
    job.nodes = fields[5];
    job.name = fields[6];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

bool is_waiting(const JobState& job) { return is_one_of(job.state, kWaiting); }
bool is_running(const JobState& job) { return is_one_of(job.state, kRunning); }
bool is_over(const JobState& job) { return !is_waiting(job) && !is_running(job); }
bool is_suspended(const JobState& job) { return job.state == "SUSPENDED"; }
bool may_pass(const JobState& job) { return is_one_of(job.reason, kNeverYet); }

std::string never_starts(const JobState& job) {
  if (!is_waiting(job)) return "";
  std::string reason = job.reason;
  std::replace(reason.begin(), reason.end(), ' ', '_');  // 22.05 writes "launch failed requeued held"
  const bool never = is_one_of(reason, kNever) || may_pass(job) || has_one_of(reason, kNeverPart);
  if (!never) return "";
  if (reason.rfind("launch_failed", 0) == 0) {
    return fmt::format(
        "its job {} could not be launched on its node (for example, a prolog failed), and Slurm holds it", job.id);
  }
  return fmt::format("its job {} can never start: Slurm gives {} as the reason", job.id, job.reason);
}

ExitStatus exit_of(const JobState& job) {
  if (WIFEXITED(job.wait_status)) return {WEXITSTATUS(job.wait_status), 0};
  return {-1, WTERMSIG(job.wait_status)};
}

bool is_memory_kill(const std::string& words) { return has_one_of(words, kMemoryKill); }

std::optional<Verdict> verdict_of(const JobState& job, const std::string& words) {
  const auto says = [&](Outcome outcome, bool again, const char* what) {
    return Verdict{outcome, fmt::format("its job {} {}", job.id, what), again};
  };
  if (job.state == "TIMEOUT" || job.state == "DEADLINE") {
    return says(Outcome::timed_out, false, "reached its time limit (--job-time)");
  }
  // The limit of jobacct_gather leaves another state.
  if (job.state == "OUT_OF_MEMORY" || is_memory_kill(words)) {
    return says(Outcome::out_of_memory, false, "used more host memory than it may (Slurm: out of memory)");
  }
  if (job.state == "NODE_FAIL") return says(Outcome::failed, true, "lost its node (Slurm: NODE_FAIL)");
  if (job.state == "BOOT_FAIL") return says(Outcome::failed, true, "lost its node (Slurm: BOOT_FAIL)");
  if (job.state == "PREEMPTED") return says(Outcome::failed, true, "was preempted");
  if (job.state == "REVOKED") return says(Outcome::failed, true, "was revoked");
  if (job.state == "CANCELLED") return says(Outcome::failed, false, "was cancelled by someone else");
  if (job.state == "FAILED" && (job.reason == "RaisedSignal" || job.reason == "NonZeroExitCode")) return std::nullopt;
  if (job.state == "FAILED" && (job.reason == "JobLaunchFailure" || job.reason == "Prolog")) {
    return says(Outcome::failed, true,
                "could not be launched on its node: a prolog failed, or the node does not see the run "
                "directory, which must be on a file system that all nodes see");
  }
  return std::nullopt;
}

std::optional<Verdict> verdict_without_note(const JobState& job) {
  if (job.state != "COMPLETED" && job.reason != "NonZeroExitCode") return std::nullopt;
  return Verdict{Outcome::failed,
                 fmt::format("its job {} ended with status {} on {} and left no note here: the node does not see the "
                             "run directory, which must be on a file system that all nodes see, or cannot write there",
                             job.id, exit_of(job).code, job.nodes),
                 true};
}

bool may_pass(const std::string& message) { return has_one_of(message, kPassing); }

}  // namespace dsat::host
