"""Weights of a training in Python and the other way round, and trainings on data of one's own."""
import json
import os
import subprocess
import tempfile
import unittest

from forked_trials import run_dsat_trial
from support import BUILD, FIXTURES, HostTest

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

    def test_an_export_without_room_or_to_a_read_only_folder_loses_nothing(self):
        self.train(3)
        there = self.dir / "there"
        there.mkdir()
        (there / "out.pt").write_text("old")
        checkpoint = sorted((path, path.read_bytes()) for path in self.dir.glob("ckpt/*/*"))
        alone = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh", "-c"]
        full = (f"mount -t tmpfs -o size=4k none {there} && printf old > {there}/out.pt",
                f"test $(cat {there}/out.pt) = old && test $(ls {there} | wc -l) = 1",
                r"it takes \d+ bytes, and 0 are free there")
        # As on a disk that is full before the file is whole, although there was room when it was begun.
        limited = ("trap '' XFSZ && ulimit -f 1", f"test $(ls {there} | wc -l) = 1", "File too large")
        read_only = (f"mount --bind {there} {there} && mount -o remount,bind,ro {there}", "true",
                     "Read-only file system")
        for mount, kept, text in (full, limited, read_only):
            if subprocess.run([*alone, mount], capture_output=True).returncode != 0:
                self.skipTest("nothing can be mounted here")
            for name in ("out.pt", "out.safetensors"):
                with self.subTest(text, name=name):
                    export = f"{BUILD}/dsat-trial export ckpt {there}/{name}; status=$?"
                    result = subprocess.run([*alone, f"{mount} && {{ {export}; {kept} && exit $status; }}"],
                                            cwd=self.dir, capture_output=True, text=True, timeout=120)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertRegex(result.stderr, rf"\Adsat-trial: cannot write {there}/{name}: {text}\n\Z")
        self.assertEqual((there / "out.pt").read_text(), "old")
        self.assertEqual(sorted((path, path.read_bytes()) for path in self.dir.glob("ckpt/*/*")), checkpoint)

    def test_more_threads_than_cores_train_the_same(self):
        losses = {}
        for threads in ("1", "999"):
            tuning = {"enabled": True, "start_profile_step": 0, "end_profile_step": 2, "metric_path": "metrics.json"}
            (self.dir / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "autotuning": tuning,
                                                          "zero_optimization": {"stage": 3}}))
            environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
            result = subprocess.run([BUILD / "dsat-trial", "--model", "mlp", "--layers", "2", "--hidden", "64",
                                     "--ranks", "6", "--deepspeed_config", "ds.json"], cwd=self.dir,
                                    env=environment, capture_output=True, text=True, timeout=240)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            losses[threads] = json.loads((self.dir / "metrics.json").read_text())["losses"]
        self.assertEqual(losses["999"], losses["1"])

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
