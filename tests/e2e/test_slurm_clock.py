"""Time limits of Slurm, whose least is a minute and is looked at every half: jobs, and the end of an allocation."""
from slurm_support import FEW, ONE_BY_ONE, SlurmTest, varied


class Clock(SlurmTest):
    # Side by side: each waits for a minute.
    def test_time_limits(self):
        jobs = self.start("jobs", [*varied(ONE_BY_ONE, "--max-trials", "2"), "--runner", "slurm", "--job-time", "1"],
                          self.patient(self.dir / "never"))
        first = self.allocate("-N1", "--ntasks-per-node=2", "--time=1")
        options = varied(FEW, "--max-trials", "15", "--max-micro-batch", "16")
        pilot = self.start("pilot", options, self.patient(7), first)
        self.check_foreseen_end(pilot)
        self.finish(jobs, status=None)
        trials = self.trials("jobs")
        self.assertEqual(trials[0]["outcome"], "timed_out", trials)
        self.assertIn("time limit (--job-time)", trials[0]["reason"])

    def check_foreseen_end(self, pilot):
        out = self.finish(pilot, status=3)
        self.assertIn("too soon", out)
        self.assertIn("dsat-host resume", out)
        self.assertNotIn("failed", {trial["outcome"] for trial in self.trials("pilot").values()})
        (self.dir / "patient.py").write_text((self.dir / "patient.py").read_text().replace("float(wait)", "0"))
        self.assert_ok(self.resume("pilot", in_allocation=self.allocate("-N2", "--ntasks-per-node=4")))
        self.assert_all_accounted("pilot")
