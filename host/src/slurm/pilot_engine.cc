// Builds srun's command lines, reads its output when a step fails, and watches the allocation's time limit.
#include "slurm/pilot_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/files.h"
#include "dsat/base/numbers.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "runner/trial_files.h"
#include "slurm/job_state.h"
#include "slurm/slurm_tools.h"

namespace dsat::host {

namespace {

using std::chrono::milliseconds;

constexpr int kMostTries = 10;  // for a refused step; with the pauses, about a minute
constexpr size_t kStderrTailBytes = 16 * 1024;
constexpr milliseconds kFirstPause{250}, kLongestPause{10000};
// The time left to the host at the allocation's end, and the assumed length of a trial before any has ended.
constexpr std::chrono::seconds kLastSeconds{15}, kFirstTrial{30};

std::string key_of(const std::vector<Slot>& slots) { return slots.front().name(); }

std::set<std::string> hosts_of(const std::vector<Slot>& slots) {
  std::set<std::string> hosts;
  for (const Slot& slot : slots) hosts.insert(slot.host);
  return hosts;
}

// Finds the exit code of the first failed task in "srun: error: n2: task 1: Exited with exit code 3".
std::optional<int> status_of_first_task(const std::string& words) {
  const std::string text = "Exited with exit code ";
  const size_t at = words.find(text);
  if (at == std::string::npos) return std::nullopt;
  const size_t number = at + text.size();
  return parse_count(words.substr(number, words.find_first_not_of("0123456789", number) - number));
}

bool tells_of_lost_node(const std::string& line) {
  constexpr const char* kSigns[] = {
      "ode failure",          "NODE FAILURE", "failed on node", "on_existent node", "ommunication connection failure",
      "not valid in this job"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](const char* sign) { return line.find(sign) != std::string::npos; });
}

// Returns the words that may be names of nodes; a list such as "n[1,10]" is one word.
std::vector<std::string> node_words_of(const std::string& line) {
  std::vector<std::string> words(1);
  bool in_list = false;
  for (const char c : line) {
    in_list = c == '[' || (in_list && c != ']');
    const bool is_part = in_list || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("-_.]").find(c) != std::string_view::npos;
    if (is_part) {
      words.back() += c;
    } else {
      words.emplace_back();
    }
  }
  return words;
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

// Called when the allocation ends, or when no trial runs and a new one could not end in time. Slurm is asked for the
// end again, because the allocation may have got more time.
void PilotEngine::check_time() {
  time_timer_ = 0;
  try {
    end_ = on_loop(allocation_end(pilot_.allocation.job, options_.environment), loop_);
  } catch (const Error&) {
    // The end that was known before stays in use.
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
  // Retired nodes never come back. The answer "room" makes take() fail with that reason, so the study does not wait for
  // ever.
  return RemoteEngine::has_room_for(shapes) || (shapes.size() == 1 && begun_.empty() && !retired_.empty());
}

std::optional<std::vector<Slot>> PilotEngine::take(const TrialShape& shape) {
  auto slots = RemoteEngine::take(shape);
  if (slots) {
    begun_[key_of(*slots)] = loop_.now();
  } else if (!retired_.empty() && begun_.empty()) {
    throw internal_error(
        fmt::format("nodes of the allocation failed ({}), and the other nodes have no room for a trial",
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

// The nodes are in the allocation's order, which Slurm uses for its tasks: the first task is on the first node.
std::vector<const AllocationNode*> PilotEngine::nodes_of(const Launch& launch) const {
  const std::set<std::string> hosts = hosts_of(launch.slots);
  std::vector<const AllocationNode*> nodes;
  for (const AllocationNode& node : pilot_.allocation.nodes) {
    if (hosts.count(node.name) != 0) nodes.push_back(&node);
  }
  if (nodes.size() != hosts.size()) throw internal_error("a trial has a node that is not in its allocation");
  return nodes;
}

bool PilotEngine::runs_tasks(const Launch& launch) const {
  return spread_of(pilot_.request, shape_of(launch.slots)) != Spread::command;
}

// --exact and --cpus-per-task are not used, since Slurm would bind all overlapping steps to the same processors.
Argv PilotEngine::client_command(const Launch& launch) const {
  const std::vector<const AllocationNode*> all = nodes_of(launch);
  const bool as_tasks = runs_tasks(launch);
  const std::vector<const AllocationNode*> nodes(all.begin(), as_tasks ? all.end() : all.begin() + 1);
  const bool as_ranks = spread_of(pilot_.request, shape_of(launch.slots)) == Spread::srun;
  const size_t tasks = as_ranks ? launch.slots.size() : nodes.size();
  std::vector<std::string> names;
  int gpus = nodes.front()->gpus;
  for (const AllocationNode* node : nodes) {
    names.push_back(node->name);
    gpus = std::min(gpus, node->gpus);
  }
  Argv argv{"/usr/bin/env",
            "srun",
            "--jobid=" + pilot_.allocation.job,
            fmt::format("--nodes={}", nodes.size()),
            fmt::format("--ntasks={}", tasks),
            fmt::format("--ntasks-per-node={}", tasks / nodes.size()),
            fmt::format("--nodelist={}", fmt::join(names, ",")),
            "--overlap",
            "--mem=0",
            "--mpi=none",
            "--export=ALL",
            fmt::format("--job-name={}-t{}a{}", pilot_.token, launch.id, launch.attempt)};
  if (gpus > 0) argv.push_back(fmt::format("--gres=gpu:{}", gpus));
  if (as_tasks) {
    argv.insert(argv.end(),
                {"--cpu-bind=none", "--kill-on-bad-exit=1", "--output=" + file_pattern(launch.folder / kStdoutFile),
                 "--error=" + file_pattern(launch.folder / kStderrFile)});
  }
  argv.insert(argv.end(), {"sh", (launch.folder / kScriptFile).string()});
  return argv;
}

void PilotEngine::write_script(const Launch& launch) const {
  const std::vector<const AllocationNode*> nodes = nodes_of(launch);
  TrialScript script = slurm_script(pilot_.request, launch);
  script.is_task = runs_tasks(launch);
  if (script.is_task) script.first_address = nodes.front()->address;
  for (const AllocationNode* node : nodes) {
    script.nodes.push_back(node->name);
    script.has_bound_devices |= node->gpus > 0;
  }
  write_trial_script(script);
}

Argv PilotEngine::signal_command(const Launch&, const ScriptNote& note, bool at_once) const {
  return {"scancel", at_once ? "--signal=KILL" : "--signal=TERM", note.job + "." + note.step};
}

// srun prints the name of a node that it could not reach.
bool PilotEngine::retire_failed_nodes(const Launch& launch) {
  std::set<std::string> failed;
  for (const std::string& line : printable_lines(client_words(launch))) {
    if (!tells_of_lost_node(line)) continue;
    for (const std::string& word : node_words_of(line)) {
      const std::vector<std::string> names = expand_node_list(word, options_.environment);
      failed.insert(names.begin(), names.end());
    }
  }
  bool any = false;
  for (const std::string& host : hosts_of(launch.slots)) {
    if (failed.count(host) == 0) continue;
    any = true;
    if (!retired_.insert(host).second) continue;
    slots_.retire(host);
    on_notice(fmt::format("node {} of the allocation failed: the study goes on without it", host));
  }
  return any;
}

// Returns Slurm's messages about a trial, which come through the client or in the errors of the tasks.
std::string PilotEngine::words_of(const Launch& launch) const {
  std::string words = client_words(launch);
  if (!runs_tasks(launch)) return words;
  for (const std::string& line : printable_lines(read_tail(launch.folder / kStderrFile, kStderrTailBytes))) {
    if (line.rfind("slurmstepd", 0) == 0 || line.rfind("srun: ", 0) == 0) words += line + "\n";
  }
  return words;
}

// If the allocation was cancelled or its time was cut, no more trials can start.
bool PilotEngine::close_if_allocation_is_over() {
  if (!is_allocation_over(pilot_.allocation.job, options_.environment)) return false;
  on_closing(fmt::format("the allocation (job {}) is over", pilot_.allocation.job));
  return true;
}

std::optional<milliseconds> PilotEngine::retry_after(const RemoteTrial& trial, EngineEnd& end) {
  const auto lines = printable_lines(client_words(trial.launch));
  const std::string words = lines.empty() ? "srun printed nothing" : lines.back();
  if (retire_failed_nodes(trial.launch)) {
    end.verdict = Verdict{Outcome::failed, "its node failed: " + words, true};
  } else if (words.find("tep limit reached") != std::string::npos) {
    on_closing(fmt::format("the allocation (job {}) takes no more steps: {}", pilot_.allocation.job, words));
    end.verdict = Verdict{Outcome::failed, "its allocation takes no more steps", true};
  } else if (close_if_allocation_is_over()) {
    end.verdict = Verdict{Outcome::failed, "its allocation is over: " + words, true};
  } else if (trial.tries < kMostTries) {
    return std::min(kLongestPause, kFirstPause * (1 << trial.tries));
  } else {
    end.verdict = Verdict{Outcome::failed, "Slurm did not start its step: " + words, true};
  }
  return std::nullopt;
}

void PilotEngine::explain(const RemoteTrial& trial, EngineEnd& end) {
  const std::string words = words_of(trial.launch);
  const auto has = [&](const char* text) { return words.find(text) != std::string::npos; };
  if (retire_failed_nodes(trial.launch)) {
    end.verdict = Verdict{Outcome::failed, "its node failed", true};
  } else if (is_memory_kill(words)) {
    end.verdict =
        Verdict{Outcome::out_of_memory, "its step used more host memory than it may (Slurm: out of memory)", false};
  } else if (const auto status = status_of_first_task(words)) {
    end.exit = {*status, 0};  // the task failed by itself, and Slurm ended the others
  } else if (has("CANCELLED") && close_if_allocation_is_over()) {
    end.verdict = Verdict{Outcome::failed, "its allocation is over", true};
  } else if (has("DUE TO TIME LIMIT")) {
    end.verdict = Verdict{Outcome::timed_out, "its step reached a time limit of Slurm", false};
  } else if (has("CANCELLED")) {
    end.verdict = Verdict{Outcome::failed, "its step was cancelled by someone else", false};
  }
}

}  // namespace dsat::host
