"""What goes wrong with jobs, on a real Slurm: every trial is accounted for, and the study goes on or can."""
import signal

import mini_slurm
from slurm_support import FEW, ONE_BY_ONE, Waiting, varied
from support import HOST

# Jobs of the partition "high" preempt those of "low", which are requeued.
PREEMPTION = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
LOW_AND_HIGH = ("PartitionName=low Nodes=n1 PriorityTier=1 PreemptMode=REQUEUE MaxTime=INFINITE State=UP",
                "PartitionName=high Nodes=n1 PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP")


class Jobs(Waiting):
    conf, partitions = PREEMPTION, LOW_AND_HIGH

    def begin(self, *options, of_slurm=()):
        """The study and its first job, whose script runs."""
        options = [*varied(FEW, *options), "--runner", "slurm", *of_slurm]
        process = self.start("run", options, self.patient(self.dir / "go"), self.count_asking())
        job = self.wait_for_jobs(1, "RUNNING")[0]
        self.wait_for_script()
        return process, job

    def test_a_host_that_is_killed_finds_jobs_that_ended_and_jobs_that_run(self):
        process, (job, name) = self.begin()
        self.kill_host(process)
        self.assertIn(job, [found for found, _ in self.jobs("RUNNING")], "jobs outlive their host")
        resumed = self.start_in_cluster([HOST, "resume", "run"], self.counted)
        self.wait_for_asking()
        self.assertIn((job, name), self.jobs("RUNNING"))
        self.kill_host(resumed)
        self.go()
        mini_slurm.wait_until(lambda: not self.jobs("RUNNING"), "the jobs end while the host is away")
        self.assert_ok(self.resume("run"))
        trials = self.assert_all_accounted("run")
        self.assertEqual({trial["attempt"] for trial in trials.values()}, {1})
        names = [found for _, found in self.jobs("COMPLETED", "RUNNING", "FAILED", "CANCELLED")
                 if found.startswith(name[:13])]
        self.assertEqual(len(names), len(set(names)), "nothing was submitted twice")

    def count_asking(self):
        self.counted = super().count_asking()
        return self.counted

    def test_a_preempted_job_keeps_its_trial(self):
        process, (job, _) = self.begin("--partition", "low", "--max-concurrent-trials", "1", "--max-trials", "2",
                                       of_slurm=["--slurm-option=--exclusive"])
        self.slurm.run("sbatch", "--partition=high", "--exclusive", "--job-name=other", "--output=/dev/null",
                       "--wrap=sleep 1")
        mini_slurm.wait_until(lambda: job in [found for found, _ in self.jobs("PENDING")], "the job is requeued")
        self.go()
        self.finish(process)
        self.assertEqual(self.assert_all_accounted("run")[0]["attempt"], 1)
        restarts = self.slurm.run("squeue", "--noheader", "--states=all", "--jobs", job, "--Format=RestartCnt")
        self.assertEqual(restarts.strip(), "1")

    def test_a_job_that_someone_cancels_is_reported_and_run_again_once(self):
        process, (job, _) = self.begin()
        self.slurm.run("scancel", job)
        mini_slurm.wait_until(lambda: job in [found for found, _ in self.jobs("CANCELLED")], "the job is cancelled")
        self.go()
        out = self.finish(process)
        self.assertIn(f"job {job} was cancelled", out)
        self.assert_all_accounted("run")

    def test_a_queue_that_takes_nothing_is_waited_for(self):
        process, _ = self.begin("--max-concurrent-trials", "1")
        self.slurm.run("scontrol", "update", "PartitionName=main", "State=DRAIN")
        self.go()
        self.wait_for_asking(3)
        self.assertIsNone(process.poll())
        self.slurm.run("scontrol", "update", "PartitionName=main", "State=UP")
        self.finish(process)
        self.assert_all_accounted("run")

    def test_a_job_that_can_never_start_is_not_waited_for(self):
        process, _ = self.begin("--max-concurrent-trials", "1", "--max-trials", "3")
        self.slurm.run("scontrol", "update", "PartitionName=main", "MaxTime=1")
        self.addCleanup(self.slurm.run, "scontrol", "update", "PartitionName=main", "MaxTime=INFINITE")
        self.go()
        out = self.finish(process, status=None)
        self.assertRegex(out, r"its job \d+ can never")
        self.assertIn("PartitionTimeLimit", out)
        self.assertEqual([trial["outcome"] for trial in self.trials("run").values()][:2], ["completed", "failed"])
        self.assertEqual(self.jobs(), [], "a job that never starts is cancelled")

    def test_an_interrupted_study_cancels_its_jobs_and_goes_on(self):
        process, _ = self.begin()
        process.send_signal(signal.SIGINT)
        self.finish(process, status=3)
        mini_slurm.wait_until(lambda: not self.jobs(), "its jobs are gone")
        self.go()
        self.assert_ok(self.resume("run"))
        self.assert_all_accounted("run")

    def test_the_death_of_a_node_costs_its_trial_a_second_run(self):
        process, (job, _) = self.begin("--max-concurrent-trials", "1", of_slurm=["--slurm-option=--no-requeue"])
        node = self.slurm.run("squeue", "--noheader", "--jobs", job, "--format=%N")
        self.slurm.lose_node(node)
        self.assertIn(job, [found for found, _ in self.jobs("NODE_FAIL")])
        self.slurm.return_node(node)
        self.go()
        out = self.finish(process)
        self.assertIn("lost its node", out)
        self.assertEqual(self.assert_all_accounted("run")[0]["attempt"], 2)


class Controller(Waiting):
    """It dies and comes back. On a cluster of its own: one that has lost nodes may forget jobs as it starts."""

    def test_a_controller_that_is_killed_means_nothing(self):
        options = [*ONE_BY_ONE, "--runner", "slurm"]
        process = self.start("run", options, self.patient(self.dir / "go"), self.count_asking())
        self.wait_for_jobs(1, "RUNNING")
        self.wait_for_script()
        self.slurm.wait_until_saved()
        self.slurm.kill_controller()
        self.go()
        self.wait_for_asking()
        self.assertIsNone(process.poll())
        self.slurm.start_controller()
        self.finish(process)
        self.assert_all_accounted("run")

    def test_a_step_is_asked_for_again_while_the_controller_is_away(self):
        process = self.start("run", ONE_BY_ONE, self.patient(self.dir / "go"), self.allocate("-N1"))
        self.wait_for_script()
        self.slurm.wait_until_saved()
        self.slurm.kill_controller()
        self.go()
        mini_slurm.wait_until(lambda: "slurm controller" in self.words_of_clients(), "a step is refused")
        self.slurm.start_controller()
        self.finish(process)
        self.assertEqual({trial["attempt"] for trial in self.assert_all_accounted("run").values()}, {1})

    def words_of_clients(self):
        return "".join(file.read_text() for file in self.dir.glob("run/trials/*/client.txt"))
