"""Scripts written for Determined, with its imports and calls, under dsat-host: on the stand-in for the package."""
import json
import os
import shutil
import subprocess
import sys

from support import FIXTURES, HOST, HostTest, PROJECT
from waiting import wait_until

PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to
MODEL = FIXTURES / "determined"
PYTHON_PACKAGE = str(PROJECT / "sdk/python")


class DeterminedScripts(HostTest):
    def setUp(self):
        super().setUp()
        for file in MODEL.iterdir():
            shutil.copy(file, self.dir)
        path = f"{FIXTURES / 'bin'}:{os.path.dirname(PYTHON)}:{os.environ['PATH']}"
        # No PYTHONPATH to the stand-in for determined: dsat-host puts it there.
        self.environment = dict(os.environ, PYTHONPATH=str(FIXTURES / "packages"), OMP_NUM_THREADS="1", PATH=path)

    def run_form(self, *words):
        return subprocess.run([*map(str, words)], cwd=self.dir, env=self.environment, capture_output=True, text=True,
                              timeout=240)

    def tune(self, experiment, *options, trials=3):
        result = self.run_form(HOST, "random", experiment, ".", "--max-trials", trials, "--profile-trials", 1,
                               "--output-dir", "out", *options)
        self.assert_ok(result)
        return self.show(self.dir / "out")

    def on_one_slot(self, experiment):
        text = (self.dir / experiment).read_text()
        self.assertIn("slots_per_trial: 2", text)
        (self.dir / experiment).write_text(text.replace("slots_per_trial: 2", "slots_per_trial: 1"))

    def best_command(self, **variables):
        """What best_cmd.txt holds, run again, as a user does."""
        command = (self.dir / "out/best_cmd.txt").read_text()
        return subprocess.run(["sh", "-c", command], cwd=self.dir, env={**self.environment, **variables},
                              capture_output=True, text=True, timeout=240)

    def metrics(self):
        return [json.loads(line) for line in (self.dir / "out/metrics.jsonl").read_text().splitlines()]

    def checkpoints(self):
        return [entry for entry in (self.dir / "out/checkpoints").iterdir() if entry.is_dir()]


class ATrialClass(DeterminedScripts):
    def test_it_is_tuned_and_then_trained_with_the_best_configuration(self):
        study = self.tune("trial.yaml", "--run-full-experiment")
        self.assertEqual([t["outcome"] for t in study["trials"]], ["completed"] * 3)
        self.assertEqual(study["profile"]["num_params"], 4 * 2 + 2)
        for trial in study["trials"][1:]:
            self.assertGreater(trial["metrics"]["wall_latency"], 0)  # of the loop around the class
        self.assertIn("determined.exec.harness --train-entrypoint model_def:PointsTrial",
                      (self.dir / "out/trials/1/cmd.txt").read_text())
        groups = [(m["group"], m["steps_completed"]) for m in self.metrics()]
        self.assertEqual(groups, [("training", 2), ("training", 4), ("training", 6), ("validation", 6)])
        self.assertEqual(set(self.metrics()[-1]["metrics"]), {"val_loss", "accuracy"})
        self.assertEqual(len(self.checkpoints()), 1)

    def test_the_older_entrypoint_names_the_class_alone(self):
        self.on_one_slot("trial.yaml")
        text = (self.dir / "trial.yaml").read_text()
        (self.dir / "trial.yaml").write_text(text[:text.index("entrypoint:")] + "entrypoint: model_def:PointsTrial\n")
        self.assertEqual([t["outcome"] for t in self.tune("trial.yaml", trials=2)["trials"]], ["completed"] * 2)

    def test_a_class_that_is_not_there_ends_the_study_with_one_line(self):
        self.on_one_slot("trial.yaml")
        text = (self.dir / "trial.yaml").read_text().replace("PointsTrial", "PointTrial")
        (self.dir / "trial.yaml").write_text(text)
        result = self.run_form(HOST, "random", "trial.yaml", ".", "--output-dir", "out")
        self.assert_ok(result, 1)
        self.assertIn("no class PointTrial", result.stderr)
        self.assertIn("PointsTrial", result.stderr)


class APipeline(DeterminedScripts):
    """Two stages in two processes, which pass activations (STAND_IN_GLOO)."""

    def setUp(self):
        super().setUp()
        self.environment.update(STAND_IN_GLOO="1", CUDA_VISIBLE_DEVICES="0,1")

    def test_it_is_tuned_and_trained(self):
        study = self.tune("pipeline.yaml", "-m", "throughput", "-z", 0, 1, "--run-full-experiment", trials=4)
        self.assertEqual([t["outcome"] for t in study["trials"]], ["completed"] * 4, study["trials"])
        self.assertEqual(study["profile"]["num_params"], (4 * 8 + 8) + (8 * 8 + 8) + (8 * 2 + 2))
        for trial in study["trials"][1:]:
            self.assertEqual(trial["metrics"]["latency_steps"], 3)
            self.assertGreater(trial["metrics"]["wall_latency"], 0)
        groups = [(m["group"], m["steps_completed"]) for m in self.metrics()]
        self.assertEqual(groups, [(group, step) for step in (2, 4, 6) for group in ("training", "validation")])
        self.assertEqual(set(self.metrics()[-1]["metrics"]), {"val_loss"})

    def test_stopped_with_workers_it_goes_on_as_if_it_had_not(self):
        text = (self.dir / "pipeline.yaml").read_text()
        text = text.replace("max_length: 6", "max_length: 200").replace(": 2\n", ": 10\n")
        (self.dir / "pipeline.yaml").write_text(text)
        process = self.start_host([HOST, "random", "pipeline.yaml", ".", "-m", "throughput", "-z", "1", "--max-trials",
                                   "2", "--output-dir", "out", "--run-full-experiment"], env=self.environment)
        reported = self.dir / "out/metrics.jsonl"
        wait_until(lambda: reported.exists() and reported.read_text(), "the full training's first report", 200)
        process.terminate()
        _, err = process.communicate(timeout=120)
        self.assertIn("ended with status 143", err)
        self.assertLess(self.metrics()[-1]["steps_completed"], 200)
        self.assert_ok(self.best_command())
        resumed = self.metrics()
        reported.unlink()
        shutil.rmtree(self.dir / "out/checkpoints")
        self.assert_ok(self.best_command())
        self.assertEqual(resumed, self.metrics())

    def train(self, folder, length=6, status=0, **variables):
        here = self.dir / folder
        here.mkdir(exist_ok=True)
        for name in ("model_def.py", "pipeline_def.py", "ds_pipeline.json"):
            shutil.copy(self.dir / name, here)
        (here / "hparams.json").write_text(json.dumps({"deepspeed_config": "ds_pipeline.json"}))
        (here / "experiment.json").write_text(json.dumps({
            "searcher": {"metric": "val_loss", "max_length": length}, "scheduling_unit": 2,
            "min_validation_period": 2}))
        environment = {**self.environment, "DSAT_HPARAMS": str(here / "hparams.json"), "PYTHONPATH":
                       f"{PYTHON_PACKAGE}:{FIXTURES / 'packages'}", "DSAT_EXPERIMENT": str(here / "experiment.json"),
                       **variables}
        result = subprocess.run([PYTHON, "-m", "determined.launch.deepspeed", "--trial", "pipeline_def:PipelineTrial"],
                                cwd=here, env=environment, capture_output=True, text=True, timeout=240)
        self.assert_ok(result, status)
        return result, [json.loads(line) for line in (here / "metrics.jsonl").read_text().splitlines()]

    def test_two_stages_learn_what_two_replicas_of_one_learn(self):
        _, two = self.train("two")
        config = json.loads((self.dir / "ds_pipeline.json").read_text())
        config["pipeline"]["stages"], config["gradient_accumulation_steps"] = 1, 1  # as many samples a batch
        (self.dir / "ds_pipeline.json").write_text(json.dumps(config))
        _, one = self.train("one")
        self.assertEqual(len(one), 6)
        for of_one, of_two in zip(one, two):
            (name, value), = of_two["metrics"].items()
            self.assertAlmostEqual(of_one["metrics"][name], value, places=5)

    def test_a_stage_that_raises_ends_both_with_its_line(self):
        result, _ = self.train("raises", status=1, DIES_AT="3.1")
        self.assertIn("ValueError: this stage cannot go on", result.stderr)

    def test_a_rank_that_dies_in_a_validation_ends_both(self):
        self.train("dies", status=9, DIES_AT="validation.1")


class CoreApi(DeterminedScripts):
    def test_it_is_tuned_trained_and_goes_on_after_a_stop(self):
        self.on_one_slot("core_api.yaml")
        study = self.tune("core_api.yaml")
        self.assertEqual([t["outcome"] for t in study["trials"]], ["completed"] * 3)
        first = self.best_command(STOPS_AT="4")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual([m["steps_completed"] for m in self.metrics()], [2, 4])
        second = self.best_command()
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertIn("goes on at 4", second.stdout)
        self.assertEqual([m["steps_completed"] for m in self.metrics()], [2, 4, 6])
        # It has come to its end: once more is from the start.
        self.assertNotIn("goes on", self.best_command().stdout)


class TheRealPackage(DeterminedScripts):
    def test_it_goes_before_the_stand_in(self):
        real = self.dir / "site" / "determined"
        real.mkdir(parents=True)
        (real / "__init__.py").write_text("raise SystemExit('the real one was imported')\n")
        (self.dir / "script.py").write_text("import determined\n")  # nothing that takes long goes before it
        self.environment["PYTHONPATH"] += f":{self.dir / 'site'}"
        result = self.run_form(HOST, "random", "core_api.yaml", ".", "--output-dir", "out")
        self.assert_ok(result, 1)
        self.assertIn("the real one", result.stderr)


class TheModules(DeterminedScripts):
    def setUp(self):
        super().setUp()
        self.environment.update(PYTHONPATH=f"{PYTHON_PACKAGE}:{FIXTURES / 'packages'}", DSAT_HOST=str(HOST))

    def test_dsat_as_a_module_is_dsat_host(self):
        self.on_one_slot("trial.yaml")
        for module in ("determined.pytorch.dsat", "dsat.autotune"):
            with self.subTest(module):
                result = self.run_form(sys.executable, "-m", module, "random", "trial.yaml", ".", "--max-trials", 2,
                                       "--output-dir", module)
                self.assert_ok(result)
                self.assertTrue((self.dir / module / "best_ds_config.json").exists())

    def test_a_wrong_option_is_dsat_hosts_own_message(self):
        result = self.run_form(sys.executable, "-m", "determined.pytorch.dsat", "asha", "trial.yaml", ".",
                               "--max-trails", 2)
        self.assert_ok(result, 2)
        self.assertIn("--max-trails", result.stderr)

    def test_without_the_program_one_line_says_what_to_do(self):
        self.environment["DSAT_HOST"] = str(self.dir / "nowhere")
        result = self.run_form(sys.executable, "-m", "dsat.autotune")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^dsat: cannot start .*nowhere: No such file")

    def launch(self, max_length, folder=".", **variables):
        """PointsTrial on two ranks, whose gradients are averaged; its working folder takes what it leaves."""
        here = self.dir / folder
        here.mkdir(exist_ok=True)
        for name in ("model_def.py", "ds_config.json"):
            if folder != ".":
                shutil.copy(self.dir / name, here)
        (here / "hparams.json").write_text(json.dumps({"deepspeed_config": "ds_config.json"}))
        experiment = {"searcher": {"metric": "val_loss", "max_length": max_length}, "scheduling_unit": 2}
        (here / "experiment.json").write_text(json.dumps(experiment))
        environment = {**self.environment, "DSAT_HPARAMS": str(here / "hparams.json"), "CUDA_VISIBLE_DEVICES": "0,1",
                       "DSAT_EXPERIMENT": str(here / "experiment.json"), "STAND_IN_GLOO": "1", **variables}
        result = subprocess.run([PYTHON, "-m", "determined.launch.deepspeed", "--trial", "model_def:PointsTrial"],
                                cwd=here, env=environment, capture_output=True, text=True, timeout=240)
        self.assert_ok(result)
        lines = [json.loads(line) for line in (here / "metrics.jsonl").read_text().splitlines()]
        return result, [(m["group"], m["steps_completed"], m["metrics"]) for m in lines]

    def test_two_ranks_stop_with_a_checkpoint_and_go_on_as_if_they_had_not(self):
        _, whole = self.launch({"batches": 6}, "whole")
        stopped, metrics = self.launch({"batches": 6}, "parts", STOPS_AT="3")
        self.assertEqual([step for _, step, _ in metrics], [2, 4])  # the stretch under way ends first
        self.assertEqual(stopped.stdout.count("shutdown after 1 epochs"), 2)
        again, metrics = self.launch({"batches": 6}, "parts")
        self.assertEqual(again.stdout.count("startup at 4"), 2)
        self.assertEqual(metrics, whole)

    def test_the_launch_module_starts_the_class_by_itself_too(self):
        (self.dir / "hparams.json").write_text(json.dumps({"deepspeed_config": "ds_config.json"}))
        experiment = {"searcher": {"metric": "val_loss", "max_length": {"epochs": 1}}}
        (self.dir / "experiment.json").write_text(json.dumps(experiment))
        self.environment.update(DSAT_HPARAMS=str(self.dir / "hparams.json"),
                                DSAT_EXPERIMENT=str(self.dir / "experiment.json"), CUDA_VISIBLE_DEVICES="0,1")
        result = self.run_form(PYTHON, "-m", "determined.launch.deepspeed", "--trial", "model_def:PointsTrial")
        self.assert_ok(result)
        self.assertIn("rank 1 of 2", result.stdout)
        # 64 points, two ranks, micro batches of 8: an epoch is four batches.
        self.assertEqual(json.loads((self.dir / "metrics.jsonl").read_text().splitlines()[-1])["steps_completed"], 4)
