"""Scripts that run something else than their configuration: none hands back a best. And look-alikes, which do."""
import json
import os
import shutil
import subprocess
import sys

import unittest

from support import CONFIG, FIXTURES, HOST, HostTest

ENGINE, DEVICES = FIXTURES / "engine", FIXTURES / "devices"
OWN = {**CONFIG, "train_micro_batch_size_per_gpu": 4}

# The step takes TIME, and the figures count the samples of the configured batch; no torch, no engine.
NO_ENGINE = """
import json, os, random, sys
config = json.load(open(sys.argv[-1]))
tuning, trial = config["autotuning"], int(os.environ["DSAT_TRIAL_ID"])
random.seed(trial)
samples = config["train_batch_size"]
if tuning.get("model_info", {}).get("profile"):
    json.dump({"num_params": 1e6, "trainable_num_params": 1e6}, open(tuning["model_info_path"], "w"))
else:
    time_us = TIME
    json.dump({"latency": time_us, "throughput": samples * 1e6 / time_us}, open(tuning["metric_path"], "w"))
"""

WRAPPER = """
import subprocess, sys
sys.exit(subprocess.call([sys.executable, "%s/train.py", "own_tensors", *sys.argv[1:]]))
""" % ENGINE


class AsAsked(HostTest):
    def tune(self, *command, options=(), trials=30, config=OWN):
        self.write_config(config)
        arguments = [HOST, "--output-dir", "out", "--max-trials", trials, "--metric", "throughput", *options, "--",
                     *command, "--deepspeed_config", "ds_config.json"]
        path = "%s:%s" % (ENGINE, DEVICES)
        self.result = subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True,
                                     timeout=240, env={**os.environ, "PYTHONPATH": path, "STAND_IN_SITE": "1",
                                                       "PATH": "%s/bin:%s" % (FIXTURES, os.environ["PATH"])})
        return self.show("out")

    def script(self, how, *words, head=(sys.executable,), **more):
        return self.tune(*head, ENGINE / "train.py", how, *words, **more)

    def assert_nothing_is_handed_back(self, study, *texts, most_measured=3):
        self.assert_ok(self.result, 1)
        self.assertEqual((study["study"]["status"], study["study"]["best"], study["study"]["gain"]),
                         ("no_best", None, None))
        for name in ("best_ds_config.json", "best_cmd.txt", "best_ds_metrics.json"):
            self.assertFalse((self.dir / "out" / name).exists(), name)
        for text in texts:
            self.assertIn(text, study["study"]["reason"])
        self.assertLessEqual(len(self.measured(study)), most_measured)

    @staticmethod
    def measured(study):
        return [t for t in study["trials"] if t["attempt"] > 0 and t["outcome"] in ("completed", "failed")
                and "num_params" not in (t["metrics"] or {})]

    def assert_best(self, study):
        self.assert_ok(self.result)
        self.assertEqual(study["study"]["status"], "completed")
        self.assertEqual({t["outcome"] for t in study["trials"] if t["attempt"] > 0}, {"completed"})
        self.assertGreater(study["study"]["best"]["config"]["train_micro_batch_size_per_gpu"], 4)

    MAPPING = "--arg-mapping train_micro_batch_size_per_gpu=--batch_size"

    def test_a_loader_of_its_own(self):
        study = self.script("own_loader", "--batch_size", 4)
        self.assert_nothing_is_handed_back(study, self.MAPPING)

    def test_batches_from_no_loader(self):
        study = self.script("own_tensors", "--batch_size", 4)
        self.assert_nothing_is_handed_back(study, self.MAPPING)

    def test_batches_of_changing_lengths(self):
        self.assert_nothing_is_handed_back(self.script("own_lengths", "--batch_size=4"), self.MAPPING)

    def test_noise_of_its_time(self):
        study = self.script("own_tensors", "--set", "slower_by=noise")
        self.assert_nothing_is_handed_back(study)

    def test_a_time_that_grows_with_the_trials(self):
        study = self.script("own_loader", "--set", "slower_by=trial")
        self.assert_nothing_is_handed_back(study)

    def test_a_batch_finder(self):
        self.assert_nothing_is_handed_back(self.script("finder"))

    def test_a_wrapper_around_it(self):
        (self.dir / "wrapper.py").write_text(WRAPPER)
        self.assert_nothing_is_handed_back(self.tune(sys.executable, "wrapper.py"))

    def test_an_engine_with_a_micro_batch_of_its_own(self):
        study = self.script("loader", "--set", "train_micro_batch_size_per_gpu=4")
        self.assert_nothing_is_handed_back(study, "train_micro_batch_size_per_gpu")

    def test_an_engine_with_an_accumulation_of_its_own(self):
        study = self.script("loader", "--set", "gradient_accumulation_steps=2")
        self.assert_nothing_is_handed_back(study, "gradient_accumulation_steps")

    def test_an_engine_with_a_stage_of_its_own(self):
        study = self.script("loader", "--set", "stage=1", options=["-z", "1,2,3"])
        self.assert_nothing_is_handed_back(study, "zero_optimization.stage", most_measured=12)

    def test_ranks_that_know_nothing_of_each_other(self):
        study = self.script("loader", "--set", "world_size=1", head=["deepspeed", "--num_gpus", 2],
                            options=["--slots", 2])
        self.assert_nothing_is_handed_back(study, "data_parallel_size", "--slots-per-trial 1")

    def test_without_torch_only_the_time_shows_it(self):
        for time in ("2e4", "2e4 * random.gauss(1, 0.05)", "2e4 * 1.02 ** trial"):
            with self.subTest(time=time):
                (self.dir / "train.py").write_text(NO_ENGINE.replace("TIME", time))
                study = self.tune(sys.executable, "-S", "-E", "train.py", trials=40)
                self.assert_nothing_is_handed_back(study, "train_micro_batch_size_per_gpu", most_measured=40)
                subprocess.run(["rm", "-r", self.dir / "out"], check=True)

    def test_a_limit_of_its_own_is_a_ceiling(self):
        study = self.script("capped", "--batch_size", 64, trials=20)
        self.assert_ok(self.result)
        self.assertLessEqual(study["study"]["best"]["config"]["train_micro_batch_size_per_gpu"], 64)
        for trial in study["trials"]:
            if trial["config"]["train_micro_batch_size_per_gpu"] > 256 and trial["attempt"]:
                self.assertEqual(trial["outcome"], "failed")

    def test_a_part_of_each_batch(self):
        study = self.script("kept", "--batch_size", 4)
        self.assert_ok(self.result, 1 if study["study"]["best"] is None else 0)
        best = study["study"]["best"]
        self.assertLessEqual(best["config"]["train_micro_batch_size_per_gpu"] if best else 4, 4)

    def test_look_alikes(self):
        for how in ("loader", "parts", "packed", "tokens", "small_loader"):
            with self.subTest(how=how):
                self.assert_best(self.script(how, trials=10, options=["--max-micro-batch", 64]))
                subprocess.run(["rm", "-r", self.dir / "out"], check=True)

    def test_a_time_that_does_not_depend_on_small_batches(self):
        (self.dir / "train.py").write_text(NO_ENGINE.replace("TIME", "max(2e4, 20 * samples)"))
        study = self.tune(sys.executable, "-S", "-E", "train.py", trials=30)
        self.assert_best(study)

    def test_the_mapping_that_it_suggests_mends_it(self):
        study = self.script("own_loader", "--batch_size", 4, trials=10, options=[
            "--max-micro-batch", 64, "--arg-mapping", "train_micro_batch_size_per_gpu=--batch_size"])
        self.assert_best(study)
        self.assertIn("--batch_size %d" % study["study"]["best"]["config"]["train_micro_batch_size_per_gpu"],
                      (self.dir / "out/best_cmd.txt").read_text())

    def test_a_checkpoint_that_trials_share_is_named_before_the_training(self):
        shared = self.dir / 'a "model" \u00fc'
        warning = "saved a checkpoint in %s: a training that goes on" % shared
        self.assert_best(self.script("loader", "--save", shared, trials=6))
        self.assertIn(warning, self.result.stdout.partition("best: ")[2])
        shutil.rmtree(self.dir / "out")
        self.assert_best(self.script("loader", "--save", "{trial_dir}/model", trials=6))
        self.assertNotIn(warning, self.result.stdout)

    def test_a_resumed_study_stays_without_a_best(self):
        self.script("own_loader", "--batch_size", 4)
        resumed = subprocess.run([HOST, "resume", "out", "--max-trials", "40"], cwd=self.dir, capture_output=True,
                                 text=True, timeout=240, env={**os.environ, "PYTHONPATH": "%s:%s" % (ENGINE, DEVICES)})
        self.assertEqual(resumed.returncode, 1, resumed.stderr)
        self.assertIsNone(self.show("out")["study"]["best"])

    def test_without_the_probe_nothing_is_seen(self):
        study = self.script("own_loader", trials=5, options=["--no-probe", "--max-micro-batch", 8])
        self.assertEqual({json.dumps(t["outcome"]) for t in study["trials"]}, {'"completed"'})


if __name__ == "__main__":
    unittest.main()
