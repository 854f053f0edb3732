// What Slurm says of a job, and what follows for its trial.
#include "slurm/job_state.h"

#include <gmock/gmock.h>

#include "slurm/allocation.h"
#include "slurm/job_request.h"
#include "slurm/slurm_tools.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

JobState job(const std::string& state, const std::string& reason = "None") {
  JobState job;
  job.id = "12";
  job.state = state;
  job.reason = reason;
  return job;
}

TEST(JobState, LinesOfSqueueAreReadAndOthersPassedOver) {
  const auto jobs = parse_jobs("7|RUNNING|None|0|0|n1|dsat-1-t0a1|\nnonsense\n 8 |PENDING|Resources|0|2||other|\n");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "dsat-1-t0a1");
  EXPECT_TRUE(is_running(jobs[0]));
  EXPECT_EQ(jobs[1].id, "8");
  EXPECT_EQ(jobs[1].restarts, 2);
  EXPECT_TRUE(is_waiting(jobs[1]));
}

TEST(JobState, HowAJobEndedIsReadFromItsWaitStatus) {
  const auto jobs = parse_jobs("7|FAILED|NonZeroExitCode|768|0|n1|a|\n8|FAILED|RaisedSignal|9|0|n1|b|\n");
  EXPECT_EQ(exit_of(jobs.at(0)).code, 3);
  EXPECT_EQ(exit_of(jobs.at(1)).signal, 9);
}

TEST(JobState, EveryEndHasItsOutcome) {
  EXPECT_EQ(verdict_of(job("TIMEOUT"))->outcome, Outcome::timed_out);
  EXPECT_EQ(verdict_of(job("OUT_OF_MEMORY"))->outcome, Outcome::out_of_memory);
  for (const char* state : {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED"}) {
    EXPECT_TRUE(verdict_of(job(state))->infrastructure) << state;
    EXPECT_TRUE(is_over(job(state))) << state;
  }
  EXPECT_FALSE(verdict_of(job("CANCELLED"))->infrastructure);
  EXPECT_THAT(verdict_of(job("CANCELLED"))->reason, HasSubstr("by someone else"));
  EXPECT_TRUE(verdict_of(job("FAILED", "JobLaunchFailure"))->infrastructure);
  EXPECT_FALSE(verdict_of(job("FAILED", "NonZeroExitCode")).has_value());
  EXPECT_FALSE(verdict_of(job("COMPLETED")).has_value());
  EXPECT_FALSE(is_over(job("COMPLETING")));
}

TEST(JobState, ANoteThatIsMissingNamesTheRunDirectory) {
  const auto verdict = verdict_without_note(job("COMPLETED"));
  EXPECT_TRUE(verdict->infrastructure);
  EXPECT_THAT(verdict->reason, HasSubstr("does not see the run directory"));
  EXPECT_TRUE(verdict_without_note(job("FAILED", "NonZeroExitCode")));
  EXPECT_FALSE(verdict_without_note(job("FAILED", "RaisedSignal")));  // the script itself was killed
}

TEST(JobState, WhatNeverStartsIsKnownFromItsReason) {
  EXPECT_THAT(never_starts(job("PENDING", "PartitionNodeLimit")), HasSubstr("PartitionNodeLimit"));
  EXPECT_THAT(never_starts(job("PENDING", "QOSMaxNodePerJobLimit")), HasSubstr("can never start"));
  EXPECT_EQ(never_starts(job("PENDING", "Resources")), "");
  EXPECT_EQ(never_starts(job("PENDING", "QOSMaxJobsPerUserLimit")), "");
  EXPECT_EQ(never_starts(job("RUNNING", "PartitionNodeLimit")), "");
}

TEST(JobState, AFailedPrologIsKnownByEitherSpelling) {
  for (const char* reason : {"launch failed requeued held", "launch_failed_requeued_held"}) {
    EXPECT_THAT(never_starts(job("PENDING", reason)), HasSubstr("prolog"));
  }
}

// Slurm 22.05 with jobacct_gather/linux and OverMemoryKill.
TEST(JobState, AKillForMemoryIsKnownByWhatSlurmPrints) {
  const auto failed = job("FAILED", "JobLaunchFailure");
  const auto verdict =
      verdict_of(failed, "slurmstepd-n1: error: StepId=1.batch exceeded memory limit (3 > 2), being killed");
  EXPECT_EQ(verdict->outcome, Outcome::out_of_memory);
  EXPECT_FALSE(verdict->infrastructure);
  EXPECT_TRUE(verdict_of(failed, "slurmstepd: error: couldn't chdir")->infrastructure);
}

TEST(JobState, AControllerThatDoesNotAnswerMayPass) {
  EXPECT_TRUE(may_pass("squeue: error: Unable to contact slurm controller (connect failure)"));
  EXPECT_TRUE(may_pass("Batch job submission failed: Required partition not available (inactive or drain)"));
  EXPECT_FALSE(may_pass("Batch job submission failed: Invalid partition name specified"));
}

TEST(Allocation, IsReadFromScontrol) {
  const Allocation allocation = parse_allocation(
      "JobId=6 JobName=t\n   StartTime=2026-11-22T19:11:40 EndTime=2026-11-22T20:11:40 Deadline=N/A\n"
      "   NodeList=n[1-3]\n   NumNodes=3 NumCPUs=12 NumTasks=12 CPUs/Task=1\n   JOB_GRES=gpu:4\n"
      "     Nodes=n[1-2] CPU_IDs=0-2,7 Mem=256 GRES=gpu:a100:2(IDX:0-1)\n     Nodes=n9 CPU_IDs=4 Mem=256 GRES=\n");
  EXPECT_EQ(allocation.job, "6");
  EXPECT_EQ(allocation.tasks_per_node, 4);
  EXPECT_TRUE(allocation.end.has_value());
  ASSERT_EQ(allocation.nodes.size(), 2u);
  EXPECT_EQ(allocation.node_list, "n[1-3]");
  EXPECT_EQ(allocation.nodes[0].gpus, 2);
  EXPECT_EQ(allocation.nodes[1].gpus, 0);
  EXPECT_EQ(allocation.slots().size(), 2u + 4u);
}

TEST(Allocation, OneWithoutAnEndNeverEnds) {
  EXPECT_FALSE(parse_allocation("JobId=6\n EndTime=Unknown\n").end.has_value());
}

TEST(JobRequest, TimesAreSlurmsOrOurs) {
  EXPECT_EQ(slurm_time("30"), "30");
  EXPECT_EQ(slurm_time("1:30:00"), "1:30:00");
  EXPECT_EQ(slurm_time("2-12"), "2-12");
  EXPECT_EQ(slurm_time("2h"), "120");
  for (const char* bad : {"3x", "", "-5", "1:2:3:4", "0s"}) {
    EXPECT_THAT(error_of([&] { slurm_time(bad); }), HasSubstr("time limit")) << bad;
  }
}

TEST(JobRequest, GpusAreAskedForByTheSlotsOfANode) {
  JobRequest request;
  request.trial_timeout = std::chrono::minutes(10);
  request.has_gpus = true;
  EXPECT_THAT(sbatch_options(request, TrialShape::even(2, 4)), Contains("--gres=gpu:4"));
  EXPECT_THAT(sbatch_options(request, TrialShape::even(2, 4)), Contains("--time=12"));
  request.gres = "gpu:a100";
  EXPECT_THAT(sbatch_options(request, TrialShape::even(1, 2)), Contains("--gres=gpu:a100:2"));
  request.gres = "none";
  EXPECT_THAT(sbatch_options(request, TrialShape::even(1, 2)), Not(Contains(HasSubstr("gres"))));
}

TEST(JobRequest, RanksOfOneTaskHaveAProcessorEach) {
  JobRequest request;
  request.launcher = Launcher::deepspeed;  // which starts the ranks itself
  EXPECT_THAT(sbatch_options(request, TrialShape::even(2, 4)), Contains("--ntasks-per-node=1"));
  EXPECT_THAT(sbatch_options(request, TrialShape::even(2, 4)), Contains("--cpus-per-task=4"));
  request.launcher = Launcher::none;
  EXPECT_THAT(sbatch_options(request, TrialShape::even(2, 4)), Contains("--ntasks-per-node=4"));
  EXPECT_THAT(sbatch_options(request, TrialShape::even(2, 4)), Not(Contains(HasSubstr("cpus-per-task"))));
}

TEST(SlurmTools, AJobsOwnVariablesDoNotReachACommand) {
  const Environment clean = without_slurm_variables({"SLURM_JOB_ID=7", "SBATCH_QOS=x", "SLURM_CONF=/c", "HOME=/"});
  EXPECT_EQ(clean, (Environment{"SLURM_CONF=/c", "HOME=/"}));
}

TEST(SlurmTools, VersionsAreReadAndCompared) {
  EXPECT_EQ(parse_slurm_version("slurm 22.05.8"), std::make_pair(22, 5));
  EXPECT_EQ(parse_slurm_version("slurm-wlm 19.05.5"), std::make_pair(19, 5));
  EXPECT_EQ(parse_slurm_version("?"), std::make_pair(0, 0));
}

}  // namespace
}  // namespace dsat::host
