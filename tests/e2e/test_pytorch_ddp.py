"""A PyTorch script without DeepSpeed: two ranks really train over Gloo and really run out of memory."""
import json
import os
import shutil
import unittest
from unittest import mock

from support import HostTest, PROJECT

EXAMPLE = PROJECT / "examples/scripts/pytorch_ddp"
PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to
BEST_OVER_WORST = 3  # as the example's README says


class PyTorch(HostTest):
    def setUp(self):
        super().setUp()
        for file in EXAMPLE.iterdir():
            if file.is_file():
                shutil.copy(file, self.dir)
        environment = mock.patch.dict(os.environ, PYTHONPATH=str(PROJECT / "sdk/python"))
        environment.start()
        self.addCleanup(environment.stop)

    def training(self):
        return [PYTHON, "train.py", "--ranks", "2", "--memory", "112", "--deepspeed_config", "ds_config.json"]

    def test_the_best_configuration_is_much_faster_and_memory_really_runs_out(self):
        # Given more memory than the script may take, the search goes past what fits: it is the kernel that says so.
        result = self.run_host(["--zero-stages", 0, 1, "--max-trials", 7, "--device-memory", "170MiB",
                                "--output-dir", "out"], self.training())
        self.assert_ok(result)
        study = self.show(self.dir / "out")
        self.assertEqual(study["profile"]["world_size"], 2)
        outcomes = {trial["outcome"] for trial in study["trials"]}
        self.assertEqual(outcomes, {"completed", "out_of_memory"}, study["trials"])
        for trial in study["trials"]:
            if trial["outcome"] == "out_of_memory":
                self.assertIn("can't allocate memory: you tried to allocate", trial["reason"])
        measured = [t["metrics"]["throughput"] for t in study["trials"]
                    if t["metrics"] and "throughput" in t["metrics"]]
        best = json.loads((self.dir / "out/best_ds_metrics.json").read_text())
        self.assertGreaterEqual(best["throughput"], BEST_OVER_WORST * min(measured), measured)
        self.assertGreater(best["wall_latency"], 0)

    def test_a_stage_that_the_script_does_not_have_is_its_own_message(self):
        result = self.run_host(["--zero-stages", 2, "--max-trials", 3, "--output-dir", "out"], self.training())
        self.assert_ok(result, 1)
        self.assertIn("stage 2: this script", result.stderr)


if __name__ == "__main__":
    unittest.main()
