// Runs every trial as its own job: sbatch, one squeue for all jobs, scancel.
//
// A job's name is unique to the study, the trial and the attempt. A job is identified by its name, because a controller
// that lost its state uses ids again. Before a second submission the queue is asked for the name. The script's end note
// has priority; Slurm's state explains a missing note. While the controller does not answer, no trial ends.
// Threading: control thread only. Ownership: jobs outlive this object; the next host finds them by their names.
#ifndef DSAT_HOST_SLURM_JOB_ENGINE_H_
#define DSAT_HOST_SLURM_JOB_ENGINE_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/engine.h"
#include "runner/trial_script.h"
#include "slurm/job_request.h"
#include "slurm/job_state.h"
#include "slurm/slurm_tools.h"

namespace dsat::host {

struct JobEngineOptions {
  JobRequest request;
  std::string token;        // of the study; its jobs' names begin with it
  std::vector<Slot> slots;  // as many as the largest trial has; without hosts, since Slurm chooses the nodes
  int max_jobs = 1;         // queued or running
  std::optional<int> max_slots{};
  Environment environment{};  // of the commands and of the jobs
  std::chrono::milliseconds file_patience{std::chrono::seconds(30)};
  std::chrono::milliseconds ask_interval{std::chrono::seconds(1)};  // the shortest time between two squeues
  // The time that a job may wait for nodes to come back, if Slurm says that it cannot start without them.
  std::chrono::milliseconds never_patience{std::chrono::minutes(10)};
};

class JobEngine : public Engine {
 public:
  JobEngine(Loop& loop, JobEngineOptions options);
  ~JobEngine() override;

  bool has_room_for(const std::vector<TrialShape>& shapes) const override;
  std::optional<std::vector<Slot>> take(const TrialShape& shape) override;
  void give_back(const std::vector<Slot>& slots) override;
  bool slots_name_hosts() const override { return false; }
  void prepare(TrialContext& context) const override;
  void launch(const Launch& launch) override;
  void stop(uint64_t id, bool at_once) override;
  bool adopt(const Launch& launch) override;

 private:
  enum class JobPhase { looking, in_line, submitting, submitted };  // in_line: waits until fewer sbatch run
  struct Job {
    Launch launch;
    std::string name, id;  // id: empty until Slurm gives one
    JobPhase phase = JobPhase::submitting;
    bool running = false, is_ending = false, at_once = false;
    bool ends_unstarted = false;  // the job is being cancelled before its start; its trial ends next
    int refusals = 0;             // of sbatch, in a row
    int unseen = 0;               // answers of squeue without this job, in a row
    std::optional<JobState> last;
    std::optional<ScriptNote> ended;
    std::optional<Loop::Clock::time_point> gone_since;   // since when Slurm reports the job's end
    std::optional<Loop::Clock::time_point> never_since;  // since when Slurm reports that the job cannot start
    Loop::Clock::time_point not_before;                  // earliest time of the next sbatch
  };

  std::string name_of(const Launch& launch) const;
  void submit(Job& job);
  void submit_next();
  void handle_submission(uint64_t id, const ToolOutput& output);
  void look_at_files();
  void ask_soon();
  void ask();
  void handle_answer(const ToolOutput& output);
  static void forget_notes(const Job& job);
  void note_never(Job& job);
  bool ends_unstarted(Job& job);
  void note_state(Job& job, const JobState& state);
  void note_absence(Job& job);
  void decide(Job& job);
  void cancel(std::vector<std::string> jobs, std::function<void()> then = {});  // then: called when Slurm has answered
  void cancel_ending();
  void end_in_line();
  void give_up_unreachable();
  void end(uint64_t id, const EngineEnd& end);
  void keep_looking();

  Loop& loop_;
  JobEngineOptions options_;
  SlurmTools tools_;
  std::map<uint64_t, Job> jobs_;
  int slots_in_use_ = 0, submitting_ = 0;
  std::deque<uint64_t> line_;                               // trials whose job is to be submitted
  std::chrono::milliseconds shortest_interval_, interval_;  // between two squeues
  bool asking_ = false, complained_ = false, reported_never_ = false;
  uint64_t ask_timer_ = 0, file_timer_ = 0, cancel_timer_ = 0;
  Loop::Clock::time_point last_asked_{};
  std::set<std::string> cancelled_;  // job ids; not cancelled again before the next answer
  std::set<std::string> ended_;      // names of jobs whose trial has ended; they end by themselves
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_JOB_ENGINE_H_
