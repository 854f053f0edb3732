// Trials as steps of an allocation: a stand-in for srun runs them here, or says what Slurm says when it cannot.
#include "slurm/pilot_engine.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
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

// As srun does: the last of its words is the script.
constexpr const char* kRunHere = R"(for script; do :; done
export SLURM_JOB_ID=5 SLURM_STEP_ID=3 SLURMD_NODENAME=n1 SLURM_PROCID=0
exec sh "$script")";

// A step that is lost in its course, and what srun then says.
std::string run_and_say(const std::string& words) {
  return "for script; do :; done\nSLURMD_NODENAME=n1 sh \"$script\" & wait\necho '" + words + "' >&2; exit 137";
}
// A command that takes its script with it: no end is noted.
constexpr const char* kLost = "kill -KILL $PPID";

class PilotEngineTest : public TempDirTest {
 protected:
  PilotEngineTest() : slurm_(dir()) {
    slurm_.command("srun", kRunHere);
    slurm_.command("scontrol", "cat \"$dir/job\"");
    slurm_.command("scancel", "kill -TERM $(sed 's/.*\"pid\": \\([0-9]*\\).*/\\1/' \"$dir/trial/run_started.json\")");
    write_text(dir() / "job", "JobId=5 JobName=x\n   JobState=RUNNING Reason=None\n");
    options_.launcher = DSAT_LAUNCH;
    options_.environment = slurm_.environment();
    options_.file_patience = std::chrono::milliseconds(1);
    options_.allocation.job = "5";
    options_.allocation.nodes = {{"n1"}, {"n2"}};
    options_.token = "tok";
  }
  PilotEngine& engine() {
    if (!engine_) {
      options_.slots = options_.allocation.slots();
      engine_ = std::make_unique<PilotEngine>(loop_, options_);
      engine_->on_running = [this](uint64_t) { is_running_ = true; };
      engine_->on_ended = [this](uint64_t, const EngineEnd& end) { ended_ = end; };
      engine_->on_notice = [this](const std::string& line) { notices_.push_back(line); };
      engine_->on_closing = [this](const std::string& line) { closing_.push_back(line); };
    }
    return *engine_;
  }
  void launch(const std::string& script) {
    std::filesystem::create_directory(dir() / "trial");
    Launch trial;
    trial.folder = dir() / "trial";
    trial.cwd = dir();
    trial.argv = {"sh", "-c", script};
    trial.slots = *engine().take({});
    write_text(trial.folder / kCommandFile, "");
    engine().launch(trial);
  }
  bool has_room() { return engine().has_room_for({TrialShape()}); }
  EngineEnd end() {
    run_until(loop_, [&] { return ended_.has_value(); });
    return *ended_;
  }

  Loop loop_;
  SlurmStandIn slurm_;
  PilotEngineOptions options_;
  std::unique_ptr<PilotEngine> engine_;
  bool is_running_ = false;
  std::optional<EngineEnd> ended_;
  std::vector<std::string> notices_, closing_;
};

TEST_F(PilotEngineTest, ATrialRunsAsAStepOnItsNode) {
  launch("exit 4");
  EXPECT_EQ(end().exit.code, 4);
  EXPECT_FALSE(end().verdict.has_value());
  ASSERT_EQ(slurm_.calls("srun").size(), 1u);
  for (const char* word : {"--jobid=5 ", "--nodelist=n1 ", "--ntasks=1 ", "--overlap ", "--job-name=tok-t0a1 "}) {
    EXPECT_THAT(slurm_.calls("srun")[0], HasSubstr(word));
  }
}

TEST_F(PilotEngineTest, ANodeThatFailsIsRetiredAndTheTrialRunsAgain) {
  slurm_.command("srun", "echo 'srun: error: Task launch for StepId=5.0 failed on node n1: Node failure' >&2; exit 1");
  launch("true");
  EXPECT_TRUE(end().verdict.value().infrastructure);
  EXPECT_THAT(notices_, ElementsAre(AllOf(HasSubstr("node n1 "), HasSubstr("failed"))));
  engine().give_back({{"0", 0, std::nullopt, "n1"}});
  const auto next = engine().take({});
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->front().host, "n2");
  EXPECT_FALSE(has_room());
}

TEST_F(PilotEngineTest, ANodeWhoseNameBeginsThatOfAFailedOneStays) {
  slurm_.command("srun", "echo 'srun: error: Task launch for StepId=5.0 failed on node n10: Node failure' >&2; exit 1");
  write_text(dir() / "job", "JobId=5\n   JobState=CANCELLED Reason=None\n");  // nor is it tried again
  launch("true");
  EXPECT_THAT(end().verdict.value().reason, HasSubstr("allocation is over"));
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(PilotEngineTest, ANodeThatFailsMayStandInAList) {
  slurm_.command("scontrol", "[ \"$3\" = 'n[1,10]' ] && printf 'n1\\nn10\\n' || cat \"$dir/job\"");
  slurm_.command("srun", "echo 'srun: error: Node failure on n[1,10]' >&2; exit 1");
  launch("true");
  EXPECT_TRUE(end().verdict.value().infrastructure);
  EXPECT_THAT(notices_, ElementsAre(AllOf(HasSubstr("node n1 "), HasSubstr("failed"))));
}

TEST_F(PilotEngineTest, AStepWhoseNodeDiesWhileItRunsIsInfrastructure) {
  slurm_.command("srun", run_and_say("srun: error: Node failure on n1"));
  launch(kLost);
  EXPECT_TRUE(end().verdict.value().infrastructure);
  EXPECT_THAT(end().verdict->reason, HasSubstr("its node failed"));
}

TEST_F(PilotEngineTest, AStepThatTookTooMuchHostMemoryIsOutOfMemory) {
  slurm_.command("srun", run_and_say("slurmstepd: error: Detected 1 oom_kill event in StepId=5.0."));
  launch(kLost);
  EXPECT_EQ(end().verdict.value().outcome, Outcome::out_of_memory);
  EXPECT_FALSE(end().verdict->infrastructure);
}

TEST_F(PilotEngineTest, AStepThatSomebodyCancelsIsNoFaultOfItsNode) {
  slurm_.command("srun", run_and_say("slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026 ***"));
  launch(kLost);
  EXPECT_THAT(end().verdict.value().reason, HasSubstr("by someone else"));
  EXPECT_FALSE(end().verdict->infrastructure);
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(PilotEngineTest, ANoteThatIsSeenLaterThanTheEndOfItsStepIsWaitedFor) {
  const std::string note = R"({"attempt": 1, "job": "5", "step": "3", "host": "n1", "pid": 2, "time": "")";
  options_.file_patience = std::chrono::minutes(10);
  slurm_.command("srun", "echo '" + note + "}'");
  const auto others = children_of(getpid());  // of tests before this one
  launch("true");
  const auto is_other = [&](pid_t child) { return std::count(others.begin(), others.end(), child) > 0; };
  look_until(loop_, [&] {
    const auto children = children_of(getpid());
    return is_running_ && std::all_of(children.begin(), children.end(), is_other);
  });
  EXPECT_FALSE(ended_.has_value());
  write_text(dir() / "trial" / kEndedFile, note + R"(, "exit_status": 4})");
  EXPECT_EQ(end().exit.code, 4);
}

TEST_F(PilotEngineTest, AStepThatIsRefusedIsAskedForAgain) {
  slurm_.command("srun", std::string("if [ ! -e \"$dir/refused\" ]; then touch \"$dir/refused\"; "
                                     "echo 'srun: error: Unable to create step: Resources busy' >&2; exit 1; fi\n") +
                             kRunHere);
  launch("exit 0");
  EXPECT_EQ(end().exit.code, 0);
  EXPECT_FALSE(end().verdict.has_value());
  EXPECT_EQ(slurm_.calls("srun").size(), 2u);
}

TEST_F(PilotEngineTest, AnAllocationThatIsOverClosesTheStudy) {
  write_text(dir() / "job", "JobId=5\n   JobState=CANCELLED Reason=None\n");
  slurm_.command("srun", "echo 'srun: error: Unable to create step: Invalid job id specified' >&2; exit 1");
  launch("true");
  EXPECT_TRUE(end().verdict.value().infrastructure);
  EXPECT_THAT(closing_, ElementsAre(AllOf(HasSubstr("(job 5)"), HasSubstr("over"))));
}

TEST_F(PilotEngineTest, NoTrialBeginsThatCouldNotEndBeforeTheAllocation) {
  const auto now = std::chrono::system_clock::now();
  options_.allocation.end = now + std::chrono::hours(1);
  EXPECT_TRUE(has_room());
  engine_.reset();
  options_.allocation.end = now + std::chrono::seconds(20);
  EXPECT_FALSE(has_room());
  write_text(dir() / "job", "JobId=5\n   EndTime=2020-01-01T00:00:00\n");
  run_until(loop_, [&] { return !closing_.empty(); });
  EXPECT_THAT(closing_, ElementsAre(HasSubstr("too soon")));
}

TEST_F(PilotEngineTest, AnAllocationThatGotMoreTimeGoesOn) {
  options_.allocation.end = std::chrono::system_clock::now() + std::chrono::seconds(20);
  write_text(dir() / "job", "JobId=5\n   EndTime=2199-01-01T00:00:00\n");
  EXPECT_FALSE(has_room());
  run_until(loop_, [&] { return has_room(); });
  EXPECT_THAT(closing_, IsEmpty());
}

TEST_F(PilotEngineTest, AStoppedTrialIsKnownByItsStep) {
  launch("exec sleep 60");
  run_until(loop_, [&] { return is_running_; });
  engine().stop(0, false);
  end();
  EXPECT_THAT(slurm_.calls("scancel"), Contains("--signal=TERM 5.3"));
}

TEST(AllocationSlots, EveryGpuIsASlotAndWithoutAnyEveryTask) {
  Allocation allocation;
  allocation.tasks_per_node = 3;
  allocation.nodes = {{"n1", 2}, {"n2", 0}};
  std::vector<std::string> names;
  for (const Slot& slot : allocation.slots()) names.push_back(slot.name());
  EXPECT_THAT(names, ElementsAre("n1:0", "n1:1", "n2:0", "n2:1", "n2:2"));
}

}  // namespace
}  // namespace dsat::host
