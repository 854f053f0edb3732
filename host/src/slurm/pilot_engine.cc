// Builds the words of srun, reads what it says when a step fails, and keeps an eye on the clock of the allocation.
#include "slurm/pilot_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "slurm/job_state.h"
#include "slurm/slurm_tools.h"

namespace dsat::host {

namespace {

using std::chrono::milliseconds;

constexpr int kMostTries = 10;  // of a step that is refused: with the pauses about a minute
constexpr milliseconds kFirstPause{250}, kLongestPause{10000};
// What is left to the host itself when the allocation ends, and what a trial takes as long as none has ended.
constexpr std::chrono::seconds kLastSeconds{15}, kFirstTrial{30};

std::string key_of(const std::vector<Slot>& slots) { return slots.front().name(); }

std::set<std::string> hosts_of(const std::vector<Slot>& slots) {
  std::set<std::string> hosts;
  for (const Slot& slot : slots) hosts.insert(slot.host);
  return hosts;
}

std::optional<Loop::Clock::time_point> on_loop(const std::optional<std::chrono::system_clock::time_point>& time,
                                               const Loop& loop) {
  if (!time) return std::nullopt;
  return loop.now() + std::chrono::duration_cast<Loop::Clock::duration>(*time - std::chrono::system_clock::now());
}

}  // namespace

PilotEngine::PilotEngine(Loop& loop, PilotEngineOptions options)
    : RemoteEngine(loop, options), pilot_(std::move(options)), end_(on_loop(pilot_.allocation.end, loop)) {
  options_.environment = without_slurm_variables(options_.environment);
  set_time_check();
}

PilotEngine::~PilotEngine() { loop_.cancel(time_timer_); }

bool PilotEngine::is_short_of_time() const {
  if (!end_) return false;
  const milliseconds trial = longest_trial_.count() > 0 ? longest_trial_ * 6 / 5 : milliseconds(kFirstTrial);
  return loop_.now() + trial + kLastSeconds > *end_;
}

void PilotEngine::set_time_check() {
  loop_.cancel(time_timer_);
  time_timer_ = 0;
  if (end_) time_timer_ = loop_.at(*end_ - kLastSeconds, [this] { check_time(); });
}

// The end has come, or no trial would end before it and none runs any more. The allocation may have got more time.
void PilotEngine::check_time() {
  time_timer_ = 0;
  try {
    end_ = on_loop(allocation_end(pilot_.allocation.job, options_.environment), loop_);
  } catch (const Error&) {
    // What was known before has to do.
  }
  if (!is_short_of_time()) return set_time_check();
  on_closing(fmt::format("the allocation (job {}) ends in {}, too soon for another trial", pilot_.allocation.job,
                         format_duration(std::chrono::ceil<std::chrono::seconds>(
                             std::max(Loop::Clock::duration::zero(), *end_ - loop_.now())))));
}

bool PilotEngine::has_room_for(const std::vector<TrialShape>& shapes) const {
  if (is_short_of_time()) {
    if (begun_.empty()) {
      loop_.cancel(time_timer_);
      time_timer_ = loop_.at(loop_.now(), [self = const_cast<PilotEngine*>(this)] { self->check_time(); });
    }
    return false;
  }
  // Nodes that are retired never come back: start() then says so, rather than that the study waits for ever.
  return RemoteEngine::has_room_for(shapes) || (shapes.size() == 1 && begun_.empty() && !retired_.empty());
}

std::optional<std::vector<Slot>> PilotEngine::take(const TrialShape& shape) {
  auto slots = RemoteEngine::take(shape);
  if (slots) {
    begun_[key_of(*slots)] = loop_.now();
  } else if (!retired_.empty() && begun_.empty()) {
    throw internal_error(fmt::format("nodes of the allocation failed ({}), and those that are left cannot hold a trial",
                                     fmt::join(retired_, ", ")));
  }
  return slots;
}

void PilotEngine::give_back(const std::vector<Slot>& slots) {
  const auto begun = begun_.find(key_of(slots));
  if (begun != begun_.end()) {
    longest_trial_ = std::max(longest_trial_, std::chrono::ceil<milliseconds>(loop_.now() - begun->second));
    begun_.erase(begun);
  }
  RemoteEngine::give_back(slots);
}

void PilotEngine::prepare(TrialContext& context) const {
  const std::vector<Slot> slots = context.slots;
  prepare_for_allocation(pilot_.request, context);
  if (context.allocation_nodes > 1) context.slots = slots;
}

Argv PilotEngine::client_command(const Launch& launch) const {
  const std::string& first = launch.slots.front().host;
  const auto here =
      std::count_if(launch.slots.begin(), launch.slots.end(), [&](const Slot& s) { return s.host == first; });
  const auto all =
      std::count_if(options_.slots.begin(), options_.slots.end(), [&](const Slot& s) { return s.host == first; });
  const AllocationNode* node = pilot_.allocation.find(first);
  const int cpus =
      node == nullptr ? 1
                      : std::max<int>(1, node->cpus * static_cast<int>(here) / std::max<int>(1, static_cast<int>(all)));
  Argv argv{"/usr/bin/env",
            "srun",
            "--jobid=" + pilot_.allocation.job,
            "--nodes=1",
            "--ntasks=1",
            "--nodelist=" + first,
            "--overlap",
            "--exact",
            fmt::format("--cpus-per-task={}", cpus),
            "--mem=0",
            "--mpi=none",
            "--export=ALL",
            fmt::format("--job-name={}-t{}a{}", pilot_.token, launch.id, launch.attempt)};
  if (node != nullptr && node->gpus > 0) argv.push_back(fmt::format("--gres=gpu:{}", node->gpus));
  argv.insert(argv.end(), {"sh", (launch.folder / kScriptFile).string()});
  return argv;
}

void PilotEngine::write_script(const Launch& launch) const {
  const AllocationNode* node = pilot_.allocation.find(launch.slots.front().host);
  StepPlace place{pilot_.allocation.job, {}};
  if (node != nullptr && node->gpus > 0) place.gres = fmt::format("gpu:{}", node->gpus);
  write_slurm_script(pilot_.request, launch, &place);
}

void PilotEngine::signal_script(const Launch&, const ScriptNote& note, bool at_once) {
  run_aside({"scancel", at_once ? "--signal=KILL" : "--signal=TERM", note.job + "." + note.step});
}

// srun names the node that it could not reach.
bool PilotEngine::retire_failed_nodes(const Launch& launch) {
  bool any = false;
  const std::vector<std::string> lines = printable_lines(client_words(launch));
  for (const std::string& host : hosts_of(launch.slots)) {
    const bool failed = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      const bool names_it = line.find(host + ":") != std::string::npos || line.find(" " + host) != std::string::npos;
      const bool lost =
          line.find("ode failure") != std::string::npos || line.find("NODE FAILURE") != std::string::npos ||
          line.find("failed on node") != std::string::npos || line.find("on_existent node") != std::string::npos ||
          line.find("ommunication connection failure") != std::string::npos ||
          line.find("not valid in this job") != std::string::npos;
      return names_it && lost;
    });
    if (!failed) continue;
    any = true;
    if (!retired_.insert(host).second) continue;
    slots_.retire(host);
    on_notice(fmt::format("node {} of the allocation failed: the study goes on without it", host));
  }
  return any;
}

std::optional<milliseconds> PilotEngine::retry_after(const Running& trial, EngineEnd& end) {
  const auto lines = printable_lines(client_words(trial.launch));
  const std::string said = lines.empty() ? "srun said nothing" : lines.back();
  if (retire_failed_nodes(trial.launch)) {
    end.verdict = Verdict{Outcome::failed, "its node failed: " + said, true};
    return std::nullopt;
  }
  if (trial.tries < kMostTries) return std::min(kLongestPause, kFirstPause * (1 << trial.tries));
  end.verdict = Verdict{Outcome::failed, "Slurm did not start its step: " + said, true};
  return std::nullopt;
}

void PilotEngine::explain(const Running& trial, EngineEnd& end) {
  const std::string words = client_words(trial.launch);
  const auto has = [&](const char* text) { return words.find(text) != std::string::npos; };
  if (retire_failed_nodes(trial.launch)) {
    end.verdict = Verdict{Outcome::failed, "its node failed", true};
  } else if (has("oom_kill") || has("oom-kill") || has("Out Of Memory")) {
    end.verdict =
        Verdict{Outcome::out_of_memory, "its step took more host memory than it may (Slurm: OUT_OF_MEMORY)", false};
  } else if (has("DUE TO TIME LIMIT")) {
    end.verdict = Verdict{Outcome::timed_out, "its step reached a time limit of Slurm's", false};
  } else if (has("CANCELLED")) {
    end.verdict = Verdict{Outcome::failed, "its step was cancelled by someone else", false};
  }
}

}  // namespace dsat::host
