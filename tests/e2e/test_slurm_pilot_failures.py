"""What goes wrong with steps of an allocation, on a real Slurm:
every trial is accounted for, and the study goes on or can."""
import os
import re

import mini_slurm
from slurm_support import FEW, ONE_BY_ONE, Waiting, varied


class Pilot(Waiting):
    def begin(self, allocation, *options):
        process = self.start("run", varied(FEW, *options), self.patient(self.dir / "go"), allocation)
        self.wait_for_script()
        return process

    def node_of_a_trial(self):
        started = sorted(self.dir.glob("run/trials/*/run_started.json"))[0]
        return re.search(r'"host": "(n\d)"', started.read_text()).group(1)

    def test_a_node_that_fails_is_retired_and_the_rest_goes_on(self):
        process = self.begin(self.allocate("-N2", "--ntasks-per-node=1", "--no-kill"))
        node = self.node_of_a_trial()
        self.slurm.lose_node(node)
        self.addCleanup(self.slurm.return_node, node)
        self.go()
        self.assertIn(f"{node} of the allocation", self.finish(process))
        self.assert_all_accounted("run")

    def test_a_trial_over_two_nodes_survives_the_death_of_one(self):
        allocation = self.allocate("-N3", "--ntasks-per-node=1", "--no-kill")
        process = self.start("run", varied(ONE_BY_ONE, "--slots-per-trial", "2", "--max-trials", "2"),
                             self.patient(self.dir / "go"), allocation)
        self.wait_for_script()
        self.slurm.lose_node("n2")
        self.addCleanup(self.slurm.return_node, "n2")
        self.go()
        self.assertIn("n2 of the allocation", self.finish(process))
        self.assert_all_accounted("run")
        steps = self.slurm.run("squeue", "--steps", "--noheader", "--format=%j")
        self.assertNotIn("dsat-", steps, "nothing of the trial is left on the other node")

    def test_a_killed_host_leaves_no_step_and_goes_on(self):
        allocation = self.allocate("-N2", "--ntasks-per-node=1")
        process = self.begin(allocation, "--max-trials", "2")
        self.kill_host(process)
        self.go()
        self.assert_ok(self.resume("run", in_allocation=allocation))
        self.assert_all_accounted("run")

    def test_an_allocation_that_is_cancelled_interrupts_the_study_and_the_next_goes_on(self):
        first = self.allocate("-N1", "--ntasks-per-node=2")
        process = self.begin(first)
        self.slurm.run("scancel", first["SLURM_JOB_ID"])
        out = self.finish(process, status=3)
        self.assertIn(f"(job {first['SLURM_JOB_ID']}) is over", out)
        self.assertIn("dsat-host resume", out)
        self.go()
        self.assert_ok(self.resume("run", in_allocation=self.allocate("-N1", "--ntasks-per-node=2")))
        self.assert_all_accounted("run")

    def test_a_step_that_leaves_processes_leaves_none(self):
        self.tune("run", varied(FEW, "--max-trials", "2"), self.command("--misbehave", "leave_child"),
                  self.allocate("-N1", "--ntasks-per-node=1"))
        children = list(self.dir.glob("run/trials/*/child.pid"))
        self.assertTrue(children)
        for file in children:
            pid = int(file.read_text())
            mini_slurm.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the child is gone", 10)
