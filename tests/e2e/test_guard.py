"""The guard on a script that learns: 35 mistakes of an engine, and what is right."""
import shutil
import sys
import unittest

from support import FIXTURES, HostTest

sys.path.insert(0, str(FIXTURES))
import learning_trial  # noqa: E402

SCRIPT = [sys.executable, "-S", "-E", str(FIXTURES / "learning_trial.py"), "--deepspeed_config", "ds_config.json"]
OWN = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 1}}
# Stage 2 is the faster one, so that a mistake of it wins unless somebody notices.
OPTIONS = ["-z", 1, 2, "--searcher", "random", "--metric", "throughput", "--max-trials", 16, "--max-micro-batch", 8,
           "--profile-trials", 1, "--slots", 1, "--output-dir", "out"]


class Guard(HostTest):
    def setUp(self):
        super().setUp()
        self.write_config(OWN)

    def tune(self, *script, options=(), status=0):
        result = self.run_host(OPTIONS + list(options), SCRIPT + list(script))
        self.assert_ok(result, status)
        return self.show("out") if status == 0 else None

    @staticmethod
    def stage(trial):
        return trial["config"]["zero_optimization"]["stage"]

    def summary(self):
        return (self.dir / "out/summary.txt").read_text()

    def test_what_is_right_is_handed_back_and_checked(self):
        study = self.tune()
        self.assertEqual(study["best"]["config"]["zero_optimization"]["stage"], 2)
        self.assertEqual(study["study"]["check"]["state"], "agrees", study["study"]["check"])
        self.assertEqual([trial["id"] for trial in study["trials"] if trial["outcome"] == "diverged"], [])
        self.assertRegex(self.summary(), r"checked: its keys at your own batch \(trial \d+\) give your own losses")
        twins = [trial for trial in study["trials"] if "twin: " in trial["note"]]
        self.assertEqual(len(twins), 1, "a trial a finalist")
        self.assertEqual(twins[0]["config"]["train_micro_batch_size_per_gpu"], 2)
        self.assertEqual(len(twins[0]["curve"]["losses"]), 6)

    def test_lines_of_output_serve_as_well(self):
        study = self.tune("--print", "--fault", "by_three",
                          options=["--loss-pattern", r"loss (\S+)", "--grad-norm-pattern", r"norm (\S+)"])
        self.assertEqual(study["best"]["config"]["zero_optimization"]["stage"], 1)

    def test_nothing_reported_and_no_twin_are_a_line_each(self):
        study = self.tune("--print")
        self.assertEqual(study["study"]["check"]["state"], "unchecked")
        self.assertIn("nothing reports a loss or a gradient norm", self.summary())
        shutil.rmtree(self.dir / "out")
        self.tune("--fault", "by_three", options=["--no-twin"])
        self.assertIn("not checked against your own configuration: --no-twin", self.summary())

    def test_a_loss_that_is_random_by_design(self):
        study = self.tune("--random")
        self.assertIsNotNone(study["best"])
        self.assertEqual([trial for trial in study["trials"] if "diverged" == trial["outcome"]], [])

    def test_a_pattern_without_a_group_or_with_no_number(self):
        result = self.run_host(OPTIONS + ["--loss-pattern", r"loss \S+"], SCRIPT)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--loss-pattern 'loss \\S+' has no group", result.stderr)
        result = self.run_host(OPTIONS + ["--loss-pattern", r"(step) \d"], SCRIPT + ["--print"])
        self.assert_ok(result)
        self.assertIn("which is no number", result.stdout + result.stderr)


class Faults(HostTest):
    """Each mistake is one study: no trial with it is handed back, and some trial shows it."""


def fault_test(fault):
    def test(self):
        self.write_config(OWN)
        self.assert_ok(self.run_host(OPTIONS, SCRIPT + ["--fault", fault]))
        study = self.show("out")
        self.assertEqual(Guard.stage(study["best"]), 1, (self.dir / "out/summary.txt").read_text())
        diverged = [trial for trial in study["trials"] if trial["outcome"] == "diverged"]
        self.assertTrue(diverged)
        self.assertEqual({Guard.stage(trial) for trial in diverged}, {2})
    return test


for name in learning_trial.FAULTS:
    setattr(Faults, "test_" + name, fault_test(name))


if __name__ == "__main__":
    unittest.main()
