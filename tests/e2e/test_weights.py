"""Weights of a training in Python and the other way round, and trainings on data of one's own."""
import json
import subprocess
import tempfile
import unittest

from forked_trials import run_dsat_trial
from support import FIXTURES, HostTest

PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to


def in_python(*arguments):
    done = subprocess.run([PYTHON, FIXTURES / "weights_in_python.py", *arguments], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


class Weights(HostTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.initial_loss = in_python("make", cls.folder.name)[0]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        super().tearDownClass()

    def run_trial(self, *options, data="data.pt", **config):
        (self.dir / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 4, **config}))
        return run_dsat_trial("--torchscript", f"{self.folder.name}/script.pt", "--data", f"{self.folder.name}/{data}",
                              "--deepspeed_config", "ds.json", *options, cwd=self.dir)

    def loss_of(self, weights):
        """Of one process in fp32 that sees all samples at once."""
        tuning = {"enabled": True, "start_profile_step": 0, "end_profile_step": 0,
                  "metric_path": str(self.dir / "metrics.json")}
        result = self.run_trial("--weights", weights, train_micro_batch_size_per_gpu=8, autotuning=tuning)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads((self.dir / "metrics.json").read_text())["losses"][0]

    def export(self, *arguments):
        return run_dsat_trial("export", *arguments, cwd=self.dir)

    def train(self, stage, **config):
        result = self.run_trial("--ranks", 2, "--steps", 5, "--checkpoint-dir", "ckpt",
                                zero_optimization={"stage": stage}, **config,
                                optimizer={"type": "Adam", "params": {"lr": 0.01}})
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_weights_of_every_stage_have_the_same_loss_in_python(self):
        for stage, bf16 in ((0, False), (1, True), (2, False), (3, True)):
            with self.subTest(stage=stage, bf16=bf16):
                self.train(stage, bf16={"enabled": bf16})
                files = [f"stage{stage}.pt", f"stage{stage}.safetensors"]
                for file in files:
                    done = self.export("ckpt", file)
                    self.assertEqual(done.stdout, f"{file}: 4 tensors of ckpt/step5\n", done.stderr)
                losses = in_python("read", *(str(self.dir / file) for file in files))
                self.assertLess(losses[0], self.initial_loss)
                for file, loss in zip(files, losses):
                    self.assertAlmostEqual(loss, losses[0], delta=1e-7)
                    self.assertAlmostEqual(self.loss_of(file), loss, delta=1e-6)
                subprocess.run(["rm", "-r", self.dir / "ckpt"], check=True)

    def test_a_state_dict_of_python_is_where_a_training_begins(self):
        self.assertAlmostEqual(self.loss_of(f"{self.folder.name}/state.pt"), self.initial_loss, delta=1e-6)

    def test_what_cannot_be_exported_is_named_and_changes_nothing(self):
        self.train(1)
        (self.dir / "file").write_text("")
        (self.dir / "out.pt").write_text("old")
        damaged = self.dir / "ckpt/step5/rank_00001.ckpt"
        for arguments, status, text in (
                (["ckpt"], 2, "export needs two names"), (["ckpt", "out.bin"], 2, "ends with .pt or .safetensors"),
                ([".", "out.pt"], 2, "no checkpoint of dsat-trial"), (["ckpt", "file/out.pt"], 1, "Not a directory"),
                (["ckpt", "--into", "out.pt"], 2, "unknown option --into")):
            with self.subTest(text):
                result = self.export(*arguments)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(text, result.stderr.splitlines()[-1])
        content = bytearray(damaged.read_bytes())
        content[-65] ^= 1
        damaged.write_bytes(content)
        result = self.export("ckpt", "out.pt")
        self.assertEqual(result.returncode, 2)
        self.assertIn("rank_00001.ckpt is damaged", result.stderr)
        self.assertEqual((self.dir / "out.pt").read_text(), "old")

    def test_data_that_do_not_fit_are_named(self):
        for options, data, text in ((["--loss", "mean"], "state.pt", "all need the same number of samples first"),
                                    ([], "none.pt", "cannot read"),
                                    (["--input-spec", "float:6"], "data.pt", "--input-spec and --data")):
            with self.subTest(text):
                result = self.run_trial(*options, data=data)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(text, result.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
