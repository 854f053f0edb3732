"""A cluster that takes little: memory, jobs, steps, a prolog that may fail. Each trial is accounted for."""
import os
import shutil
import tempfile

import mini_slurm
from slurm_support import ONE_BY_ONE, Waiting, varied

# Slurm itself ends what takes more memory than it asked for; where there are no control groups too.
MEMORY_LIMIT = {"JobAcctGatherType": "jobacct_gather/linux", "JobAcctGatherParams": "OverMemoryKill",
                "JobAcctGatherFrequency": 1}

# One of its trials takes 300 MB.
GREEDY = r"""
import os, sys, time
if os.environ["DSAT_TRIAL_ID"] != "1": os.execv(sys.executable, [sys.executable, "-S", "-E", *sys.argv[1:]])
block = b"1" * 300000000
time.sleep(60)
"""


class Limits(Waiting):
    @classmethod
    def setUpClass(cls):
        cls.site = tempfile.mkdtemp(prefix="slurm-site-")
        cls.addClassCleanup(shutil.rmtree, cls.site, ignore_errors=True)
        with open(f"{cls.site}/prolog", "w") as file:
            os.fchmod(file.fileno(), 0o755)
            file.write(f"#!/bin/sh\n[ ! -e {cls.site}/fail ] || {{ rm {cls.site}/fail; exit 1; }}\n")
        cls.conf = {**MEMORY_LIMIT, "Prolog": f"{cls.site}/prolog", "MaxJobCount": 3, "MinJobAge": 2,
                    "MaxStepCount": 5}
        super().setUpClass()

    def setUp(self):
        super().setUp()
        (self.dir / "greedy.py").write_text(GREEDY)
        mini_slurm.wait_until(lambda: not self.jobs("PENDING", "RUNNING", "COMPLETED", "CANCELLED"), "an empty queue")

    def greedy(self):
        return ["python3", "-S", "-E", "greedy.py", *self.patient(0)[3:]]

    def test_host_memory_that_runs_out_is_distinguished_from_a_devices(self):
        jobs = [*ONE_BY_ONE, "--runner", "slurm", "--slurm-option=--mem=64"]
        self.go()
        self.tune("jobs", jobs, self.greedy())
        self.assert_memory("jobs", "its job")
        self.tune("pilot", ONE_BY_ONE, self.greedy(), self.allocate("-N1", "--mem=64"))
        self.assert_memory("pilot", "its step")

    def assert_memory(self, name, what):
        trials = self.trials(name)
        self.assertEqual(trials[1]["outcome"], "out_of_memory", trials[1])
        self.assertRegex(trials[1]["reason"], f"^{what}.* more host memory")

    def test_a_failed_prolog_costs_its_trial_a_second_run(self):
        self.go()
        with open(f"{self.site}/fail", "w"):
            pass
        result = self.tune("run", [*ONE_BY_ONE, "--runner", "slurm"], self.patient(self.dir / "go"))
        self.addCleanup(self.slurm.run, "scontrol", "update", "nodename=n1", "state=resume")
        self.assertIn("could not be launched", result.stdout + result.stderr)
        self.assertEqual(self.assert_all_accounted("run")[0]["attempt"], 2)

    def test_a_full_queue_is_waited_for(self):
        for _ in range(3):
            self.slurm.run("sbatch", "--output=/dev/null", "--wrap=sleep 3")
        self.go()
        self.tune("run", [*ONE_BY_ONE, "--runner", "slurm"], self.patient(self.dir / "go"))
        self.assertEqual({trial["attempt"] for trial in self.assert_all_accounted("run").values()}, {1})

    def test_an_allocation_that_takes_no_more_steps_is_left(self):
        self.go()
        wanted = varied(ONE_BY_ONE, "--max-trials", "6", "--max-micro-batch", "16")
        left = self.run_slurm("run", wanted, self.patient(self.dir / "go"), self.allocate("-N1", "--ntasks-per-node=1"))
        self.assertEqual(left.returncode, 3, left.stderr)
        self.assertIn("takes no more steps", left.stdout + left.stderr)
        self.assert_ok(self.resume("run", in_allocation=self.allocate("-N1", "--ntasks-per-node=1")))
        self.assert_all_accounted("run")
