// Handles a job from its submission to its end, through Slurm's commands; job_state.cc gives the meaning of their
// output. Script notes are looked for often, since a look costs one stat; squeue is called at most once a second.
#include "slurm/job_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/files.h"
#include "dsat/base/utf8.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestInterval{15000}, kLongestBackOff{30000};
constexpr milliseconds kFileInterval{200};  // between looks for notes; longer with thousands of jobs
constexpr milliseconds kFileCost{1};        // added to kFileInterval for each job
constexpr milliseconds kJobCost{1};         // added to the pause between two squeues for each job in an answer
constexpr milliseconds kRequeueing{3000};   // the time to requeue a job that Slurm ended
constexpr int kTerminated = 128 + 15;       // a shell's status of a command that SIGTERM ended
constexpr int kUnseenIsGone = 3, kMostSubmissions = 8;
constexpr int kMostRefusals = 200;  // in a row; with the back-off, more than an hour
constexpr const char* kSlurmFile = "slurm.txt";
constexpr size_t kSlurmFileBytes = 16 * 1024;

// Returns the part of a job's name after the study's token: "-t5a1".
std::string suffix(const Launch& launch) { return fmt::format("-t{}a{}", launch.id, launch.attempt); }

milliseconds back_off(milliseconds first, int failures) {
  return std::min(kLongestBackOff, first * (1 << std::min(failures, 5)));
}

}  // namespace

JobEngine::JobEngine(Loop& loop, JobEngineOptions options)
    : loop_(loop),
      options_(std::move(options)),
      tools_(loop, without_slurm_variables(options_.environment)),
      shortest_interval_(options_.ask_interval),
      interval_(options_.ask_interval) {}

// Jobs are not cancelled: the next host takes them up, also after a crash of this program.
JobEngine::~JobEngine() {
  for (const uint64_t timer : {ask_timer_, file_timer_, cancel_timer_}) loop_.cancel(timer);
}

std::string JobEngine::name_of(const Launch& launch) const { return options_.token + suffix(launch); }

bool JobEngine::has_room_for(const std::vector<TrialShape>& shapes) const {
  if (static_cast<int>(jobs_.size() + shapes.size()) > options_.max_jobs) return false;
  int slots = slots_in_use_;
  for (const TrialShape& shape : shapes) slots += shape.slots();
  return !options_.max_slots || slots <= *options_.max_slots;
}

std::optional<std::vector<Slot>> JobEngine::take(const TrialShape& shape) {
  if (!has_room_for({shape})) return std::nullopt;
  auto slots = SlotPool(options_.slots, std::nullopt).take(shape);
  if (slots) slots_in_use_ += static_cast<int>(slots->size());
  return slots;
}

void JobEngine::give_back(const std::vector<Slot>& slots) { slots_in_use_ -= static_cast<int>(slots.size()); }

void JobEngine::prepare(TrialContext& context) const { prepare_for_allocation(options_.request, context); }

void JobEngine::launch(const Launch& launch) {
  write_job_script(options_.request, launch);
  Job& job = jobs_[launch.id];
  job.launch = launch;
  job.name = name_of(launch);
  submit(job);
  keep_looking();
}

// The job may be queued, running, ended or never submitted, so the queue is first asked for its name.
bool JobEngine::adopt(const Launch& launch) {
  std::error_code error;
  if (!std::filesystem::exists(launch.folder / kScriptFile, error)) return false;
  Job& job = jobs_[launch.id];
  job.launch = launch;
  job.name = name_of(launch);
  job.phase = JobPhase::looking;
  keep_looking();
  ask_soon();
  return true;
}

// A limited number of sbatch run at once, since other users share the login node and the controller.
void JobEngine::submit(Job& job) {
  job.phase = JobPhase::in_line;
  job.unseen = 0;
  line_.push_back(job.launch.id);
  submit_next();
}

void JobEngine::submit_next() {
  while (submitting_ < kMostSubmissions && !line_.empty()) {
    const uint64_t id = line_.front();
    line_.pop_front();
    const auto it = jobs_.find(id);
    if (it == jobs_.end() || it->second.phase != JobPhase::in_line) continue;
    Job& job = it->second;
    job.phase = JobPhase::submitting;
    std::vector<std::string> argv{"sbatch",
                                  "--parsable",
                                  "--job-name=" + job.name,
                                  "--export=ALL",
                                  "--chdir=" + job.launch.cwd.string(),
                                  "--output=" + file_pattern(job.launch.folder / kSlurmFile),
                                  "--open-mode=append"};
    for (std::string& option : sbatch_options(options_.request, shape_of(job.launch.slots))) {
      argv.push_back(std::move(option));
    }
    argv.push_back((job.launch.folder / kScriptFile).string());
    ++submitting_;
    tools_.run(argv, [this, id](const ToolOutput& output) {
      --submitting_;
      handle_submission(id, output);
      submit_next();
    });
  }
}

void JobEngine::handle_submission(uint64_t id, const ToolOutput& output) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end() || it->second.phase != JobPhase::submitting) return;
  Job& job = it->second;
  if (output.ok) {
    const auto lines = printable_lines(output.out);
    job.id = lines.empty() ? "" : lines.back().substr(0, lines.back().find(';'));
    job.phase = JobPhase::submitted;
    job.refusals = 0;
    if (job.is_ending) cancel_ending();
    return ask_soon();
  }
  const std::string words = output.last_word();
  // Slurm may have taken the job after all, so the queue is asked for its name before the next submission.
  if (may_pass(output.err) && ++job.refusals < kMostRefusals) {
    job.phase = JobPhase::looking;
    job.unseen = 0;
    job.not_before = loop_.now() + back_off(options_.ask_interval, job.refusals);
    if (!std::exchange(complained_, true)) on_notice(fmt::format("trial {} waits: {}", id, words));
    return ask_soon();
  }
  EngineEnd refused;
  refused.verdict = Verdict{Outcome::failed, "Slurm refused its job: " + words, false};
  end(id, refused);
}

void JobEngine::keep_looking() {
  if (file_timer_ != 0) return;
  const milliseconds pause = std::max(kFileInterval, kFileCost * static_cast<int>(jobs_.size()));
  file_timer_ = loop_.at(loop_.now() + pause, [this] {
    file_timer_ = 0;
    look_at_files();
    if (!jobs_.empty()) keep_looking();
  });
  if (ask_timer_ == 0 && !asking_) ask_soon();
}

void JobEngine::look_at_files() {
  std::vector<uint64_t> ids;
  for (const auto& [id, job] : jobs_) ids.push_back(id);
  for (const uint64_t id : ids) {
    const auto it = jobs_.find(id);
    if (it == jobs_.end()) continue;
    Job& job = it->second;
    const bool stands_still = job.last && is_suspended(*job.last);
    if (!job.running && !stands_still && read_note(job.launch.folder, kStartedFile, job.launch.attempt)) {
      job.running = true;
      on_running(id);
    }
    if (!job.ended) job.ended = read_note(job.launch.folder, kEndedFile, job.launch.attempt);
    decide(job);
  }
}

void JobEngine::ask_soon() {
  interval_ = shortest_interval_;
  if (asking_) return;
  loop_.cancel(ask_timer_);
  const auto when = std::max(loop_.now(), last_asked_ + interval_);
  ask_timer_ = loop_.at(when, [this] { ask(); });
}

void JobEngine::ask() {
  ask_timer_ = 0;
  if (jobs_.empty()) return;
  asking_ = true;
  last_asked_ = loop_.now();
  tools_.run({"squeue", "--noheader", "--me", "--states=all", "--Format=" + job_format()},
             [this](const ToolOutput& output) {
               asking_ = false;
               handle_answer(output);
             });
}

void JobEngine::handle_answer(const ToolOutput& output) {
  if (!output.ok) {  // nothing is known, so nothing has failed
    if (!std::exchange(complained_, true)) {
      on_notice("Slurm does not answer: " + output.last_word() + "; jobs continue, and dsat asks again");
    }
    interval_ = std::min(kLongestBackOff, interval_ * 2);
  } else {
    complained_ = false;
    cancelled_.clear();
    std::map<std::string, JobState> ours;
    std::vector<std::string> strays;
    std::vector<JobState> answer = parse_jobs(output.out);
    shortest_interval_ = std::max(options_.ask_interval, kJobCost * static_cast<int>(answer.size()));
    for (JobState& state : answer) {
      if (state.name.rfind(options_.token + "-t", 0) != 0) continue;
      // After a controller's loss of state, two jobs may have the same name. The live one counts.
      const auto known = ours.find(state.name);
      if (known == ours.end() || is_over(known->second)) ours[state.name] = state;
    }
    interval_ = std::max(shortest_interval_, std::min(kLongestInterval, interval_ * 3 / 2));
    for (auto& [id, job] : jobs_) {
      const auto it = ours.find(job.name);
      if (it == ours.end()) {
        note_absence(job);
      } else {
        note_state(job, it->second);
        ours.erase(it);
      }
    }
    for (const auto& [name, state] : ours) {
      // This attempt belongs to a host that died before it knew the job's id.
      if (!is_over(state) && ended_.count(name) == 0) strays.push_back(state.id);
    }
    cancel(std::move(strays));
    cancel_ending();
    look_at_files();
  }
  if (jobs_.empty()) return;
  ask_timer_ = loop_.at(loop_.now() + interval_, [this] { ask(); });
}

// Removes the notes of a run that Slurm ended in order to requeue it.
void JobEngine::forget_notes(const Job& job) {
  std::error_code error;
  std::filesystem::remove(job.launch.folder / kStartedFile, error);
  std::filesystem::remove(job.launch.folder / kEndedFile, error);
}

void JobEngine::note_state(Job& job, const JobState& state) {
  job.unseen = 0;
  if (job.phase == JobPhase::submitting && job.id.empty()) return;  // sbatch has not answered yet
  if (job.phase == JobPhase::in_line) return;
  job.phase = JobPhase::submitted;
  job.id = state.id;
  if (!job.last || job.last->state != state.state) interval_ = shortest_interval_;
  const bool requeued = job.last && state.restarts > job.last->restarts;
  if (requeued || (job.running && is_waiting(state))) {  // the job keeps its trial, whose clock stops
    if (std::exchange(job.running, false)) on_waiting(job.launch.id);
    if (is_waiting(state) && !is_suspended(state)) forget_notes(job);
    job.ended.reset();
  }
  job.last = state;
  note_never(job);
  if (!is_over(state)) {
    job.gone_since.reset();
  } else if (!job.gone_since) {
    job.gone_since = loop_.now();
  }
}

void JobEngine::note_never(Job& job) {
  const std::string never = never_starts(*job.last);
  if (never.empty()) {
    job.never_since.reset();
  } else if (!job.never_since) {
    job.never_since = loop_.now();
    if (!may_pass(*job.last) || std::exchange(reported_never_, true)) return;
    const double minutes = std::chrono::duration<double, std::ratio<60>>(options_.never_patience).count();
    on_notice(fmt::format("{}; it waits {:.3g} min longer, since nodes may come back", never, minutes));
  }
}

// Whether the job has waited long enough although Slurm says that it never starts.
bool JobEngine::ends_unstarted(Job& job) {
  if (job.ends_unstarted) return true;
  if (!job.never_since || job.is_ending || job.phase != JobPhase::submitted) return false;
  if (may_pass(*job.last) && loop_.now() - *job.never_since < options_.never_patience) return false;
  const bool failed_launch = job.last->reason.find("held") != std::string::npos;
  EngineEnd ended;
  ended.verdict = Verdict{Outcome::failed, never_starts(*job.last), failed_launch};
  job.ends_unstarted = true;
  // The study may end with this trial, and then nobody would cancel the job. So the trial's end waits for scancel.
  cancel({job.id}, [this, id = job.launch.id, name = job.name, ended] {
    const auto found = jobs_.find(id);
    if (found != jobs_.end() && found->second.name == name) end(id, ended);
  });
  return true;
}

// The queue's answer lacks the job: it is not submitted yet, or the controller forgot it.
void JobEngine::note_absence(Job& job) {
  if (job.phase == JobPhase::submitting || job.phase == JobPhase::in_line) return;
  if (++job.unseen < (job.phase == JobPhase::looking ? 1 : kUnseenIsGone)) return;
  if (job.phase == JobPhase::submitted) {
    if (!job.gone_since) job.gone_since = loop_.now();
    return;
  }
  if (job.ended || read_note(job.launch.folder, kEndedFile, job.launch.attempt)) {
    job.phase = JobPhase::submitted;
    job.gone_since = loop_.now();
  } else if (job.is_ending) {
    job.gone_since = loop_.now();
  } else if (loop_.now() >= job.not_before) {
    submit(job);
  }
}

// Decides whether the trial has ended: by the script's note or, if no note came in time, by Slurm's state.
void JobEngine::decide(Job& job) {
  EngineEnd ended;
  std::optional<Verdict> verdict;
  if (job.last && job.gone_since)
    verdict = verdict_of(*job.last, read_tail(job.launch.folder / kSlurmFile, kSlurmFileBytes));
  // Between the end of a job and its requeueing, an answer may show it as ended.
  const bool may_come_back =
      verdict && verdict->infrastructure && !job.is_ending && loop_.now() - *job.gone_since < kRequeueing;
  if (job.ended) {
    ended.exit = {job.ended->exit_status, 0};
    ended.kernel_oom_kills = job.ended->kernel_oom_kills;
    // If Slurm ended the job, it may requeue it, and the command may die before the script knows. So Slurm's state
    // decides.
    const bool signalled = job.ended->was_signalled || job.ended->exit_status == kTerminated;
    if (signalled && !job.is_ending) {
      if (!job.gone_since || may_come_back) return;
      ended.verdict = verdict;
    }
    return end(job.launch.id, ended);
  }
  if (ends_unstarted(job)) return;
  if (!job.gone_since || may_come_back) return;
  const bool forgotten = !job.last || !is_over(*job.last);
  // A job that Slurm killed or that never ran leaves no note. For any other job the file may still become visible.
  const bool no_note_comes = job.is_ending || verdict.has_value();
  if (!no_note_comes && loop_.now() - *job.gone_since < options_.file_patience) return;
  ended.verdict = no_note_comes || forgotten ? verdict : verdict_without_note(*job.last);
  if (!forgotten) ended.exit = exit_of(*job.last);
  if (forgotten && !job.is_ending) {
    ended.verdict = Verdict{Outcome::failed, fmt::format("Slurm no longer knows its job {}", job.id), true};
  }
  end(job.launch.id, ended);
}

void JobEngine::stop(uint64_t id, bool at_once) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return;
  it->second.is_ending = true;
  it->second.at_once |= at_once;
  if (cancel_timer_ != 0) return;  // trials that are stopped together are cancelled together
  cancel_timer_ = loop_.at(loop_.now(), [this] {
    cancel_timer_ = 0;
    cancel_ending();
    end_in_line();
    give_up_unreachable();
    ask_soon();
  });
}

// Ends the trials whose job was never submitted.
void JobEngine::end_in_line() {
  for (const uint64_t id : std::exchange(line_, {})) {
    const auto it = jobs_.find(id);
    if (it == jobs_.end() || it->second.phase != JobPhase::in_line) continue;
    if (it->second.is_ending) {
      end(id, EngineEnd{});
    } else {
      line_.push_back(id);
    }
  }
}

// A stop "at once" does not wait for a controller that does not answer. The next host finds the jobs by their names.
void JobEngine::give_up_unreachable() {
  if (!complained_) return;
  std::vector<uint64_t> ids;
  for (const auto& [id, job] : jobs_) {
    if (job.at_once) ids.push_back(id);
  }
  for (const uint64_t id : ids) end(id, EngineEnd{});
}

// scancel sends TERM, and KILL after the cluster's KillWait.
void JobEngine::cancel_ending() {
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) {
    if (job.is_ending && job.phase == JobPhase::submitted && !job.id.empty() && !job.gone_since) ids.push_back(job.id);
  }
  cancel(std::move(ids));
}

void JobEngine::cancel(std::vector<std::string> jobs, std::function<void()> then) {
  std::vector<std::string> argv{"scancel"};
  for (std::string& job : jobs) {
    if (cancelled_.insert(job).second) argv.push_back(std::move(job));
  }
  // The next answer of squeue shows the result.
  if (argv.size() > 1) {
    tools_.run(argv, [then = std::move(then)](const ToolOutput&) {
      if (then) then();
    });
  } else if (then) {
    then();
  }
}

void JobEngine::end(uint64_t id, const EngineEnd& ended) {
  ended_.insert(jobs_.at(id).name);
  jobs_.erase(id);
  on_ended(id, ended);
}

}  // namespace dsat::host
