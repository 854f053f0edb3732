// What becomes of a trial whose job Slurm refuses, forgets, requeues or holds; stand-ins play Slurm.
#include "slurm/job_engine.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>

#include "host/slurm/slurm_stand_in.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobEngineTest : public TempDirTest {
 protected:
  JobEngineTest() : slurm_(dir()) {
    slurm_.command("sbatch", "[ ! -e \"$dir/refusal\" ] || { cat \"$dir/refusal\" >&2; exit 1; }; echo 7");
    slurm_.command("squeue", "cat \"$dir/queue\"");
    slurm_.command("scancel", "");
    set_queue({});
    options_.token = "tok";
    options_.slots = {{"0", 0, std::nullopt, ""}};
    options_.environment = slurm_.environment();
    options_.file_patience = std::chrono::milliseconds(1);
    options_.ask_interval = std::chrono::milliseconds(5);
  }
  JobEngine& engine() {
    if (!engine_) {
      engine_ = std::make_unique<JobEngine>(loop_, options_);
      engine_->on_running = [this](uint64_t) { ++running_; };
      engine_->on_waiting = [this](uint64_t) { ++waiting_; };
      engine_->on_ended = [this](uint64_t id, const EngineEnd& end) { ended_[id] = end; };
      engine_->on_notice = [this](const std::string& line) { notices_.push_back(line); };
    }
    return *engine_;
  }
  // Lines of squeue: job, state, reason, wait status, restarts, nodes, name. Replaced in one step.
  void set_queue(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "|\n";
    write_text(dir() / "queue.new", text);
    std::filesystem::rename(dir() / "queue.new", dir() / "queue");
  }
  void note(const char* file, const std::string& more = "") {
    write_text(dir() / "trial" / file,
               R"({"attempt": 1, "job": "7", "step": "", "host": "n1", "pid": 2, "time": "")" + more + "}");
  }
  void launch() {
    std::filesystem::create_directory(dir() / "trial");
    Launch trial;
    trial.folder = dir() / "trial";
    trial.cwd = dir();
    trial.argv = {"true"};
    trial.slots = *engine().take({});
    engine().launch(trial);
  }
  void launch_and_run() {
    set_queue({"7|RUNNING|None|0|0|n1|tok-t0a1"});
    launch();
    note(kStartedFile);
    until([&] { return running_ == 1 && !asked_after().empty(); });
  }
  std::vector<std::string> asked_after() const { return slurm_.calls("squeue"); }
  void until(const std::function<bool()>& done) { look_until(loop_, done); }
  EngineEnd end() {
    until([&] { return ended_.count(0) != 0; });
    return ended_[0];
  }

  Loop loop_;
  SlurmStandIn slurm_;
  JobEngineOptions options_;
  std::unique_ptr<JobEngine> engine_;
  std::map<uint64_t, EngineEnd> ended_;
  std::vector<std::string> notices_;
  int running_ = 0, waiting_ = 0;
};

TEST_F(JobEngineTest, AsManyJobsAsAllowedAreInTheQueue) {
  options_.max_jobs = 2;
  const TrialShape shape;
  EXPECT_TRUE(engine().has_room_for({shape, shape}));
  EXPECT_FALSE(engine().has_room_for({shape, shape, shape}));
  launch();
  EXPECT_TRUE(engine().has_room_for({shape}));
  EXPECT_FALSE(engine().has_room_for({shape, shape}));
}

TEST_F(JobEngineTest, JobsTogetherTakeNoMoreSlotsThanAllowed) {
  options_.max_jobs = 9;
  options_.max_slots = 1;
  const auto slots = engine().take({});
  ASSERT_TRUE(slots.has_value());
  EXPECT_FALSE(engine().take({}).has_value());
  engine().give_back(*slots);
  EXPECT_TRUE(engine().take({}).has_value());
}

TEST_F(JobEngineTest, TheNoteOfItsScriptEndsATrial) {
  launch_and_run();
  note(kEndedFile, R"(, "exit_status": 3, "signalled": false)");
  EXPECT_EQ(end().exit.code, 3);
  EXPECT_FALSE(end().verdict.has_value());
}

TEST_F(JobEngineTest, JobsOfAStudyThatNobodyWaitsForAreCancelledAndNoOthers) {
  set_queue({"7|RUNNING|None|0|0|n1|tok-t0a1", "99|PENDING|Resources|0|0||tok-t5a1",
             "98|RUNNING|None|0|0|n1|tokyo-t5a1", "97|RUNNING|None|0|0|n1|training",
             "96|COMPLETED|None|0|0|n1|tok-t4a1"});
  launch();
  until([&] { return !slurm_.calls("scancel").empty(); });
  EXPECT_THAT(slurm_.calls("scancel"), ElementsAre("99"));
}

TEST_F(JobEngineTest, ARefusalThatMayPassIsWaitedFor) {
  write_text(dir() / "refusal",
             "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
  launch();
  until([&] { return !notices_.empty(); });
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("Socket timed out")));
  std::filesystem::remove(dir() / "refusal");
  until([&] { return slurm_.calls("sbatch").size() > 1; });
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(JobEngineTest, ARefusalForGoodEndsTheTrialWithSlurmsWords) {
  write_text(dir() / "refusal", "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  launch();
  EXPECT_THAT(end().verdict.value().reason, HasSubstr("Invalid partition name"));
  EXPECT_FALSE(end().verdict->infrastructure);
  EXPECT_THAT(slurm_.calls("sbatch"), SizeIs(1));
}

// Host memory in the limit of its job: the kernel ends the training alone, and its script notes the end.
TEST_F(JobEngineTest, TheNoteSaysWhetherTheKernelEndedItForMemory) {
  launch_and_run();
  note(kEndedFile, R"(, "exit_status": 137, "signalled": false, "oom_kills": 1)");
  EXPECT_TRUE(end().kernel_oom_kills);
  EXPECT_EQ(end().exit.code, 137);
}

TEST_F(JobEngineTest, AJobThatCanNeverStartIsCancelledAndSaysWhy) {
  set_queue({"7|PENDING|InvalidQOS|0|0||tok-t0a1"});
  launch();
  EXPECT_THAT(end().verdict.value().reason, HasSubstr("InvalidQOS"));
  EXPECT_FALSE(end().verdict->infrastructure);
  EXPECT_THAT(slurm_.calls("scancel"), ElementsAre("7"));  // before the end: the study may end with this trial
}

// Slurm gives the same reason while nodes are drained.
TEST_F(JobEngineTest, AJobWaitsForNodesThatMayComeBack) {
  set_queue({"7|PENDING|PartitionNodeLimit|0|0||tok-t0a1"});
  launch();
  until([&] { return !notices_.empty() && asked_after().size() > 4; });
  EXPECT_THAT(notices_, ElementsAre(AllOf(HasSubstr("PartitionNodeLimit"), HasSubstr("10 min"))));
  EXPECT_THAT(ended_, IsEmpty());
  set_queue({"7|RUNNING|None|0|0|n1|tok-t0a1"});
  note(kStartedFile);
  until([&] { return running_ == 1; });
}

TEST_F(JobEngineTest, AJobDoesNotWaitForNodesForEver) {
  options_.never_patience = std::chrono::milliseconds(20);
  set_queue({"7|PENDING|BadConstraints|0|0||tok-t0a1"});
  launch();
  EXPECT_THAT(end().verdict.value().reason, HasSubstr("BadConstraints"));
  until([&] { return !slurm_.calls("scancel").empty(); });
}

TEST_F(JobEngineTest, AJobThatIsHeldAfterAFailedLaunchRunsAgainElsewhere) {
  set_queue({"7|PENDING|launch failed requeued held|0|0||tok-t0a1"});
  launch();
  EXPECT_TRUE(end().verdict.value().infrastructure);
}

TEST_F(JobEngineTest, ARequeuedJobKeepsItsTrialWhoseClockStops) {
  launch_and_run();
  set_queue({"7|PENDING|BeginTime|0|1||tok-t0a1"});
  until([&] { return waiting_ == 1; });
  EXPECT_FALSE(std::filesystem::exists(dir() / "trial" / kStartedFile)) << "the note of the run that was taken back";
  set_queue({"7|RUNNING|None|0|1|n2|tok-t0a1"});
  note(kStartedFile);
  until([&] { return running_ == 2; });
  note(kEndedFile, R"(, "exit_status": 0, "signalled": false)");
  EXPECT_EQ(end().exit.code, 0);
  EXPECT_FALSE(end().verdict.has_value());
  EXPECT_THAT(slurm_.calls("sbatch"), SizeIs(1));
}

TEST_F(JobEngineTest, ASuspendedJobGoesOnWhereItStoodStill) {
  launch_and_run();
  set_queue({"7|SUSPENDED|None|0|0|n1|tok-t0a1"});
  until([&] { return waiting_ == 1; });
  const size_t asked = asked_after().size();
  until([&] { return asked_after().size() > asked + 2; });
  EXPECT_EQ(running_, 1) << "its clock stands still, too";
  set_queue({"7|RUNNING|None|0|0|n1|tok-t0a1"});
  until([&] { return running_ == 2; });
  note(kEndedFile, R"(, "exit_status": 0, "signalled": false)");
  EXPECT_EQ(end().exit.code, 0);
}

TEST_F(JobEngineTest, AJobThatSlurmForgotRunsAgain) {
  launch_and_run();
  set_queue({});
  EXPECT_THAT(end().verdict.value().reason, HasSubstr("its job 7"));
  EXPECT_TRUE(end().verdict->infrastructure);
}

TEST_F(JobEngineTest, AControllerThatDoesNotAnswerEndsNothing) {
  launch_and_run();
  slurm_.command("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
  until([&] { return !notices_.empty(); });
  const size_t asked = asked_after().size();
  until([&] { return asked_after().size() > asked + 3; });
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("does not answer"))) << "reported once";
}

TEST_F(JobEngineTest, ATrialThatIsStoppedHasItsJobCancelled) {
  launch_and_run();
  engine().stop(0, false);
  until([&] { return !slurm_.calls("scancel").empty(); });
  EXPECT_THAT(slurm_.calls("scancel"), ElementsAre("7"));
  EXPECT_THAT(ended_, IsEmpty()) << "it may still write";
  set_queue({"7|CANCELLED|None|15|0|n1|tok-t0a1"});
  end();
}

TEST_F(JobEngineTest, AJobOfAnEarlierHostIsTakenUpAndNotSubmittedAgain) {
  set_queue({"7|RUNNING|None|0|0|n1|tok-t0a1"});
  std::filesystem::create_directory(dir() / "trial");
  Launch trial;
  trial.folder = dir() / "trial";
  trial.cwd = dir();
  EXPECT_FALSE(engine().adopt(trial)) << "it was never launched";
  write_text(trial.folder / kScriptFile, "");
  note(kStartedFile);
  ASSERT_TRUE(engine().adopt(trial));
  until([&] { return running_ == 1 && !asked_after().empty(); });
  note(kEndedFile, R"(, "exit_status": 0, "signalled": false)");
  EXPECT_EQ(end().exit.code, 0);
  EXPECT_THAT(slurm_.calls("sbatch"), IsEmpty());
}

TEST_F(JobEngineTest, AJobThatDiedBeforeItsHostKnewOfItIsSubmittedAgain) {
  std::filesystem::create_directory(dir() / "trial");
  Launch trial;
  trial.folder = dir() / "trial";
  trial.cwd = dir();
  trial.slots = *engine().take({});
  write_text(trial.folder / kScriptFile, "");
  ASSERT_TRUE(engine().adopt(trial));
  until([&] { return !slurm_.calls("sbatch").empty(); });
  EXPECT_THAT(slurm_.calls("sbatch"), ElementsAre(HasSubstr("--job-name=tok-t0a1")));
}

}  // namespace
}  // namespace dsat::host
