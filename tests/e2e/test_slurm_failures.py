"""What goes wrong on a cluster, on a real Slurm: every trial is accounted for, and the study goes on or can."""
import os
import re
import signal
import subprocess
import time
import unittest

import mini_slurm
from slurm_support import SlurmTest, varied

# Jobs of the partition "high" preempt those of "low", which are requeued.
PARTITIONS = """PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=n1 PriorityTier=1 PreemptMode=REQUEUE MaxTime=INFINITE State=UP
PartitionName=high Nodes=n1 PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP
"""

FEW = ["--searcher", "grid", "--max-trials", "4", "--zero-stages", "1", "--max-micro-batch", "8", "--no-baseline",
       "--finals", "0", "--no-probe", "--max-concurrent-trials", "2", "--slots-per-trial", "1"]


class Jobs(SlurmTest):
    more_conf = PARTITIONS
    ONE_JOB_EACH = [*FEW, "--runner", "slurm"]

    def begin(self, *options, of_slurm=()):
        """A study whose trials wait for the file `go`, its first job running."""
        process = self.start("run", [*varied(self.ONE_JOB_EACH, *options), *of_slurm], self.patient(self.dir / "go"))
        return process, self.wait_for_jobs(1, "RUNNING")[0]

    def go(self):
        (self.dir / "go").touch()

    def test_a_host_that_is_killed_finds_its_jobs_again(self):
        process, (job, name) = self.begin()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.assertIn(job, [found for found, _ in self.jobs("RUNNING")], "jobs outlive their host")
        self.go()
        mini_slurm.wait_until(lambda: not self.jobs("RUNNING"), "the job ends while the host is away")
        result = self.resume("run")
        self.assert_ok(result)
        trials = self.assert_all_accounted("run")
        self.assertEqual({trial["attempt"] for trial in trials.values()}, {1}, "nothing was submitted twice")
        names = [found for _, found in self.jobs("COMPLETED", "RUNNING", "FAILED", "CANCELLED") if found.startswith(name[:13])]
        self.assertEqual(len(names), len(set(names)))

    def test_a_job_that_runs_is_adopted(self):
        process, (job, name) = self.begin()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        resumed = self.start_in_cluster([self.host(), "resume", "run"])
        time.sleep(2)  # it must have looked at the queue, and left the job alone
        self.assertIn((job, name), self.jobs("RUNNING"))
        self.go()
        self.finish(resumed)
        self.assert_all_accounted("run")
        self.assertEqual([found for found, other in self.jobs("COMPLETED", "RUNNING") if other == name], [job])

    @staticmethod
    def host():
        from support import HOST
        return HOST

    def test_a_controller_that_is_killed_means_nothing(self):
        process, (job, name) = self.begin()
        self.slurm.kill_controller()
        self.go()
        time.sleep(3)  # longer than a squeue's interval: asking fails, and nothing may follow from it
        self.assertIsNone(process.poll())
        self.slurm.start_controller()
        self.finish(process)
        self.assert_all_accounted("run")

    def test_a_preempted_job_keeps_its_trial(self):
        process, (job, _) = self.begin("--partition", "low", "--max-concurrent-trials", "1",
                                       of_slurm=["--slurm-option=--exclusive"])
        self.slurm.run("sbatch", "--partition=high", "--exclusive", "--job-name=other", "--output=/dev/null", "--wrap=sleep 2")
        mini_slurm.wait_until(lambda: job in [found for found, _ in self.jobs("PENDING")], "the job is requeued")
        self.go()
        self.finish(process)
        self.assertEqual(self.assert_all_accounted("run")[0]["attempt"], 1)
        self.assertEqual(self.slurm.run("squeue", "--noheader", "--states=all", "--jobs", job, "--Format=RestartCnt").strip(), "1")

    def test_a_job_that_someone_cancels_is_said_and_run_again_once(self):
        process, (job, _) = self.begin()
        self.slurm.run("scancel", job)
        mini_slurm.wait_until(lambda: job in [found for found, _ in self.jobs("CANCELLED")], "the job is cancelled")
        self.go()
        out = self.finish(process)
        self.assertIn(f"its job {job} was cancelled by someone else", out)
        self.assert_all_accounted("run")

    def test_a_queue_that_takes_nothing_is_waited_for(self):
        process, _ = self.begin("--max-concurrent-trials", "1")
        self.slurm.run("scontrol", "update", "PartitionName=main", "State=DRAIN")
        self.go()
        time.sleep(3)
        self.assertIsNone(process.poll())
        self.slurm.run("scontrol", "update", "PartitionName=main", "State=UP")
        self.finish(process)
        self.assert_all_accounted("run")

    def test_an_interrupted_study_cancels_its_jobs_and_goes_on(self):
        process, _ = self.begin()
        process.send_signal(signal.SIGINT)
        self.finish(process, status=3)
        mini_slurm.wait_until(lambda: not self.jobs(), "its jobs are gone")
        self.go()
        self.assert_ok(self.resume("run"))
        self.assert_all_accounted("run")

    def test_the_death_of_a_node_costs_its_trial_a_second_run(self):
        # Runs last: the node does not come back to this cluster.
        process, (job, _) = self.begin("--max-concurrent-trials", "1", of_slurm=["--slurm-option=--no-requeue"])
        node = self.slurm.run("squeue", "--noheader", "--jobs", job, "--format=%N")
        self.slurm.kill_node(node)
        mini_slurm.wait_until(lambda: job in [found for found, _ in self.jobs("NODE_FAIL")], "Slurm sees that the node is gone")
        self.go()
        out = self.finish(process)
        self.assertIn("lost its node", out)
        self.assertEqual(self.assert_all_accounted("run")[0]["attempt"], 2)


class Pilot(SlurmTest):
    def begin(self, allocation, *options):
        process = self.start("run", varied(FEW, *options), self.patient(self.dir / "go"), allocation)
        mini_slurm.wait_until(lambda: list(self.dir.glob("run/trials/*/run_started.json")), "a trial runs")
        return process

    def go(self):
        (self.dir / "go").touch()

    def test_a_node_that_fails_is_retired_and_the_rest_goes_on(self):
        process = self.begin(self.allocate("-N2", "--ntasks-per-node=1", "--no-kill"))
        started = sorted(self.dir.glob("run/trials/*/run_started.json"))[0]
        node = re.search(r'"host": "(n\d)"', started.read_text()).group(1)
        self.slurm.kill_node(node)
        self.go()
        out = self.finish(process)
        self.slurm.start_node(node)
        self.assertIn(f"node {node} of the allocation failed", out)
        self.assert_all_accounted("run")

    def test_a_killed_host_leaves_no_step_and_goes_on(self):
        allocation = self.allocate("-N2", "--ntasks-per-node=1")
        process = self.begin(allocation)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.go()
        self.assert_ok(self.resume("run", in_allocation=allocation))
        self.assert_all_accounted("run")

    def test_an_allocation_that_ends_is_foreseen_and_the_next_one_goes_on(self):
        first = self.allocate("-N1", "--ntasks-per-node=2", "--time=1")
        process = self.start("run", [*varied(FEW, "--max-trials", "15"), "--zero-stages", "2", "3"], self.patient(7), first)
        out = self.finish(process, status=3)
        self.assertIn("too soon for another trial", out)
        self.assertIn("dsat-host resume", out)
        self.assertNotIn("failed", {trial["outcome"] for trial in self.trials("run").values()})
        second = self.allocate("-N2", "--ntasks-per-node=4")
        (self.dir / "patient.py").write_text((self.dir / "patient.py").read_text().replace("float(wait)", "0"))
        self.assert_ok(self.resume("run", in_allocation=second))
        self.assert_all_accounted("run")

    def test_a_step_that_leaves_processes_leaves_none(self):
        self.tune("run", varied(FEW, "--max-trials", "2"), self.command("--misbehave", "leave_child"),
                  self.allocate("-N1", "--ntasks-per-node=1"))
        for file in self.dir.glob("run/trials/*/child.pid"):
            pid = int(file.read_text())
            mini_slurm.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the child is gone", 10)
