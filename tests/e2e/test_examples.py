"""The training scripts of examples/ on stand-ins for DeepSpeed and transformers: they are tuned, and they train."""
import json
import os
import shutil
import subprocess
import unittest
from unittest import mock

from support import FIXTURES, HOST, HostTest, PROJECT

PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to
SMALL = {"width": 16, "layers": 1, "steps": 8}


class Examples(HostTest):
    def use(self, name):
        for file in (PROJECT / "examples/scripts" / name).iterdir():
            if file.is_file():
                shutil.copy(file, self.dir)
        (self.dir / "small.json").write_text(json.dumps({**SMALL, "deepspeed_config": "ds_config.json"}))
        path = [str(PROJECT / "sdk/python"), str(FIXTURES / "packages")]
        environment = mock.patch.dict(os.environ, PYTHONPATH=":".join(path), OMP_NUM_THREADS="1",
                                      DSAT_HPARAMS=str(self.dir / "small.json"))
        environment.start()
        self.addCleanup(environment.stop)

    def tune(self, command):
        result = self.run_host(["--max-trials", 3, "--slots", 1, "--output-dir", "out"], command)
        self.assert_ok(result)
        study = self.show(self.dir / "out")
        self.assertEqual([t["outcome"] for t in study["trials"]], ["completed"] * 3)
        self.assertEqual(study["profile"]["world_size"], 1)
        return study

    def assert_tuned_end_to_end(self, study):
        for trial in study["trials"][1:]:
            self.assertGreater(trial["metrics"]["wall_latency"], 0)

    def assert_trains(self, command):
        config = json.loads((self.dir / "out/best_ds_config.json").read_text())
        (self.dir / "ds_config.json").write_text(json.dumps(config))
        result = subprocess.run(command, cwd=self.dir, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_core_api(self):
        self.use("core_api")
        study = self.tune([PYTHON, "script.py", "--deepspeed_config", "ds_config.json"])
        self.assertEqual(study["profile"]["num_params"], 16 * 16 + 16 + 2 * 16 + 2)
        self.assert_tuned_end_to_end(study)
        self.assert_trains([PYTHON, "script.py"])

    def test_deepspeed_trial(self):
        self.use("deepspeed_trial")
        study = self.tune([PYTHON, "train.py", "--deepspeed_config", "ds_config.json"])
        self.assert_tuned_end_to_end(study)
        self.assert_trains([PYTHON, "train.py"])

    def test_huggingface(self):
        self.use("huggingface")
        study = self.tune([PYTHON, "train.py", "--deepspeed", "ds_config.json", "--output_dir", "o",
                           "--max_steps", "50", "--per_device_train_batch_size", "1",
                           "--gradient_accumulation_steps", "1", "--bf16"])
        sizes = {t["config"]["train_micro_batch_size_per_gpu"] for t in study["trials"]}
        self.assertGreater(len(sizes), 1, "nothing was rewritten")
        best = json.loads((self.dir / "out/best_ds_config.json").read_text())
        command = (self.dir / "out/best_cmd.txt").read_text()
        self.assertIn(f"--per_device_train_batch_size {best['train_micro_batch_size_per_gpu']} ", command)
        self.assertNotIn("_size auto", command)
        self.assertEqual(best["gradient_clipping"], "auto")

    def test_their_experiment_files_lead_to_the_trial(self):
        # The launcher, and its ranks' Python.
        path = f"{FIXTURES / 'bin'}:{os.path.dirname(PYTHON)}:{os.environ['PATH']}"
        for name in ("core_api", "deepspeed_trial", "huggingface"):
            with self.subTest(name):
                self.use(name)
                out = self.dir.parent / (self.dir.name + "-" + name)
                self.addCleanup(shutil.rmtree, out, ignore_errors=True)
                result = subprocess.run([HOST, "asha", "deepspeed.yaml", ".", "--slots", "2", "--max-trials", "2",
                                         "--output-dir", out], cwd=self.dir, env={**os.environ, "PATH": path},
                                        capture_output=True, text=True, timeout=120)
                self.assert_ok(result)
                self.assertEqual([t["outcome"] for t in self.show(out)["trials"]], ["completed"] * 2)
                self.assertRegex((out / "trials/0/cmd.txt").read_text(),
                                 r"deepspeed .*localhost:0,1 .*(train|script)\.py")


if __name__ == "__main__":
    unittest.main()
