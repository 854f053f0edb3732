"""Determined's command lines, word for word but for the first: an experiment file, a model directory, includes."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from support import FIXTURES, HOST, HostTest

EXPERIMENT = (FIXTURES / "experiment" / "deepspeed.yaml").read_text()
INCLUDE = ["-i", FIXTURES / "protocol_trial.py"]
FEW = ["--max-trials", 6]


class ExperimentTest(HostTest):
    """A model directory, `self.dir`, with the fixture experiment; a stand-in `deepspeed` in PATH."""

    def setUp(self):
        super().setUp()
        for name in ("deepspeed.yaml", "ds_config.json", "script.py"):
            shutil.copy(FIXTURES / "experiment" / name, self.dir)
        self.environment = dict(os.environ, PATH="%s:%s" % (FIXTURES / "bin", os.environ["PATH"]))

    def run_form(self, *words, cwd=None):
        return subprocess.run([HOST, *map(str, words)], cwd=cwd or self.dir, env=self.environment,
                              capture_output=True, text=True, timeout=240)

    def write_experiment(self, *changes, name="deepspeed.yaml"):
        """The fixture with some of its lines replaced."""
        text = EXPERIMENT
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.dir / name).write_text(text)

    def read_json(self, *parts):
        return json.loads(self.dir.joinpath(*map(str, parts)).read_text())

    def only_run_dir(self):
        (run_dir,) = (self.dir / "dsat-results").iterdir()
        return run_dir


class TheCommandLineOfTheDocuments(ExperimentTest):
    def test_asha_deepspeed_yaml_in_this_folder(self):
        result = self.run_form("asha", "deepspeed.yaml", ".", *INCLUDE, *FEW)
        self.assert_ok(result)
        run_dir = self.only_run_dir()
        self.assertEqual(run_dir.name, "torchvision-dsat-core_api")
        shown = self.show(run_dir)
        self.assertEqual(shown["study"]["name"], "torchvision dsat core_api")
        self.assertEqual(shown["study"]["experiment"]["description"], "tuned as it is")
        self.assertEqual(shown["study"]["searcher"]["name"], "asha")
        self.assertEqual(shown["study"]["slots_per_trial"], 2)

        # No key is dropped without a word.
        for key in ("environment.image", "resources.shm_size", "searcher.max_length", "searcher.metric"):
            self.assertIn(key, result.stdout)

        # The script ran in a copy, with its include, its variables, its ranks and its hyperparameters.
        trial = next(t for t in shown["trials"] if t["outcome"] == "completed" and t["kind"] == "search")
        seen = self.read_json(run_dir, "trials", trial["id"], "cwd", "seen.json")
        self.assertIn("protocol_trial.py", seen["files"])
        self.assertFalse((self.dir / "seen.json").exists())
        self.assertEqual((seen["NCCL_DEBUG"], seen["world_size"]), ("INFO", "2"))
        hparams = seen["hparams"]
        self.assertEqual((hparams["model_name"], hparams["metric_reporting_rate"]), ("resnet152", 10))
        self.assertEqual(hparams["deepspeed_config"], str(run_dir / "trials" / str(trial["id"]) / "ds_config.json"))
        overwrites = dict(hparams["overwrite_deepspeed_args"])
        self.assertTrue(overwrites.pop("autotuning")["enabled"])
        self.assertEqual(overwrites.pop("log_level"), "info")
        # A trial prints its steps and begins at a low loss scale; what is handed back has the user's own.
        fp16 = {**trial["config"]["fp16"], "initial_scale_power": 8}
        self.assertEqual(overwrites, {**trial["config"], "fp16": fp16, "steps_per_print": 1})
        self.assertEqual(self.read_json(run_dir, "best_hparams.json")["overwrite_deepspeed_args"],
                         self.read_json(run_dir, "best_ds_config.json"))

    def test_the_training_in_earnest_gets_the_best_configuration(self):
        result = self.run_form("binary", "deepspeed.yaml", ".", *INCLUDE, *FEW, "--run-full-experiment", "--json")
        self.assert_ok(result)
        self.assertEqual(json.loads(result.stdout)["status"], "completed")
        run_dir = self.only_run_dir()
        # Includes are beside the model's files only in a copy; without any the model directory itself is trained in.
        self.assertEqual(self.read_json(run_dir, "full_experiment", "trained.json"),
                         self.read_json(run_dir, "best_ds_config.json"))
        self.assert_follows_the_callers_path(run_dir)
        # What a host that died left of a copy is no copy.
        shutil.rmtree(run_dir / "full_experiment")
        (run_dir / "full_experiment.new").mkdir()
        (run_dir / "full_experiment.new/part").touch()
        result = self.run_form("resume", run_dir)
        self.assert_ok(result)
        self.assertTrue((run_dir / "full_experiment/script.py").exists())
        self.assertFalse((run_dir / "full_experiment/part").exists())
        shutil.copy(FIXTURES / "protocol_trial.py", self.dir)
        result = self.run_form("binary", "deepspeed.yaml", ".", *FEW, "--run-full-experiment", "--output-dir", "out")
        self.assert_ok(result)
        self.assertEqual(self.read_json("trained.json"), self.read_json("out", "best_ds_config.json"))
        command = (self.dir / "out/best_cmd.txt").read_text()
        self.assertIn("DSAT_EXPERIMENT", command)
        (self.dir / "out/best_cmd.txt").unlink()
        self.assert_ok(subprocess.run([HOST, "best", "out"],
                                      cwd=self.dir, env=self.environment, capture_output=True, text=True))
        self.assertEqual((self.dir / "out/best_cmd.txt").read_text(), command)

    def assert_follows_the_callers_path(self, run_dir):
        """A resumed study's trials have the PYTHONPATH of who resumes it, with dsat's own packages once."""
        for more, path in ((8, "/of/first"), (10, "/of/second")):
            self.environment["PYTHONPATH"] = path
            self.assert_ok(self.run_form("resume", run_dir, "--max-trials", more))
            command = (run_dir / "best_cmd.txt").read_text()
            self.assertRegex(command, "PYTHONPATH='?%s:[^: ]*python'? " % path)

    def test_what_variables_hold_stays_with_their_owner(self):
        self.write_experiment(("- NCCL_DEBUG=INFO", "- WANDB_API_KEY=SECRET-7"))
        self.assert_ok(self.run_form("binary", "deepspeed.yaml", ".", *INCLUDE, *FEW, "--output-dir", "out"))
        holds = [file for file in (self.dir / "out").rglob("*") if file.is_file() and b"SECRET-7" in file.read_bytes()]
        own = {"dsat.db", "dsat.plan.json", "experiment.json", "best_cmd.txt"}
        names = {str(file.relative_to(self.dir / "out")) for file in holds}
        self.assertEqual({name for name in names if "/" not in name}, own)
        self.assertEqual({name.split("/")[0] for name in names - own} - {"trials", "full_experiment"}, set())
        for name in own:
            self.assertEqual((self.dir / "out" / name).stat().st_mode & 0o77, 0, name)
        for words in (["show", "out", "--json"], ["export", "out", "--format", "json"]):
            shown = self.run_form(*words)
            self.assert_ok(shown)
            self.assertNotIn("SECRET-7", shown.stdout)
            self.assertIn("WANDB_API_KEY", shown.stdout)

    def test_what_variables_hold_is_text_for_every_shell(self):
        self.write_experiment(("- NCCL_DEBUG=INFO", "- 'NCCL_DEBUG=$(touch pwned1)`touch pwned2`; touch pwned3'"))
        result = self.run_form("asha", "deepspeed.yaml", ".", *INCLUDE, "-mt", 4, "--output-dir", "out",
                               "--run-full-experiment")
        self.assert_ok(result)
        for command in [self.dir / "out/best_cmd.txt", *self.dir.glob("out/trials/*/cmd.txt")]:
            ended = subprocess.run(["/bin/sh", str(command)], cwd=self.dir, env=self.environment, capture_output=True,
                                   text=True, timeout=60)
            self.assertTrue(ended.returncode == 0 or "OutOfMemoryError" in ended.stderr, ended.stderr)
        self.assertEqual(list(self.dir.rglob("pwned*")), [])

    def test_the_copy_holds_no_results_and_links_lead_where_they_led(self):
        (self.dir / "model" / "data").mkdir(parents=True)
        for name in ("deepspeed.yaml", "ds_config.json", "script.py"):
            (self.dir / name).rename(self.dir / "model" / name)
        (self.dir / "outside.txt").write_text("outside")
        (self.dir / "model" / "data" / "link").symlink_to("../../outside.txt")
        model = self.dir / "model"
        for _ in range(2):
            self.assert_ok(self.run_form("random", "deepspeed.yaml", ".", *INCLUDE, "-mt", 2, cwd=model))
        for database in model.rglob("dsat.db"):
            self.assertEqual(database.parent.parent, model / "dsat-results")
        copy = model / "dsat-results" / "torchvision-dsat-core_api-2" / "trials" / "0" / "cwd"
        self.assertEqual((copy / "data" / "link").read_text(), "outside")

    def test_an_interrupted_experiment_goes_on_as_it_was(self):
        # The limit is raised afterwards: includes, variables and hyperparameters come from the journal.
        self.assert_ok(self.run_form("random", "deepspeed.yaml", ".", *INCLUDE, "-mt", 2, "--output-dir", "out"))
        self.assert_ok(self.run_form("resume", "out", "--max-trials", 4))
        last = self.show(self.dir / "out")["trials"][-1]
        seen = self.read_json("out", "trials", last["id"], "cwd", "seen.json")
        self.assertEqual(seen["NCCL_DEBUG"], "INFO")
        self.assertEqual(seen["hparams"]["model_name"], "resnet152")


class EntrypointsAndConfigurations(ExperimentTest):
    def test_a_list_that_names_the_configuration_and_batch_sizes(self):
        self.write_experiment(
            ("entrypoint: python3 -m determined.launch.deepspeed python3 script.py",
             "entrypoint: [python3, script.py, --deepspeed, ds_config.json, --per_device_train_batch_size, '8']"),
            ("slots_per_trial: 2", "slots_per_trial: 1"))
        self.assert_ok(self.run_form("random", "deepspeed.yaml", ".", *INCLUDE, "-mt", 4, "--output-dir", "out"))
        trial = self.show(self.dir / "out")["trials"][-1]
        seen = self.read_json("out", "trials", trial["id"], "cwd", "seen.json")
        self.assertEqual(seen["arguments"][1], str(self.dir / "out" / "trials" / str(trial["id"]) / "ds_config.json"))
        self.assertEqual(seen["arguments"][3], str(trial["config"]["train_micro_batch_size_per_gpu"]))
        self.assertIn("cd %s/out/full_experiment &&" % self.dir, (self.dir / "out" / "best_cmd.txt").read_text())

    def test_overwrites_are_merged_and_choices_are_axes(self):
        self.write_experiment(("  model_name: resnet152", """
  overwrite_deepspeed_args:
    bf16: {enabled: true}
    fp16: {enabled: false}
    zero_allow_untested_optimizer: true
    optimizer: {type: SGD, params: {lr: 1e-5}}
    zero_optimization:
      overlap_comm: {type: categorical, vals: [false]}
      stage3_prefetch_bucket_size: {type: categorical, vals: [1.0e+7, 5.0e+7]}
      stage3_param_persistence_threshold: {type: categorical, vals: [1.0e+5, 1.0e+6]}
  global_batch_size: 256
  data_parallel_world_size: 2
  model_name: resnet152"""))
        result = self.run_form("random", "deepspeed.yaml", ".", *INCLUDE, "-mt", 8, "-z", 3, "--output-dir", "out")
        self.assert_ok(result)
        shown = self.show(self.dir / "out")
        searched = [t["config"] for t in shown["trials"] if t["kind"] == "search"]
        self.assertTrue(searched)
        for config in searched:
            self.assertEqual(config["optimizer"], {"type": "SGD", "params": {"lr": 1e-5, "betas": [0.8, 0.999]}})
            self.assertFalse(config["zero_optimization"]["overlap_comm"])
            self.assertIn(config["zero_optimization"]["stage3_prefetch_bucket_size"], (1e7, 5e7))
            self.assertIn(config["zero_optimization"]["stage3_param_persistence_threshold"], (1e5, 1e6))
        hparams = self.read_json("out", "trials", shown["trials"][-1]["id"], "hparams.json")
        self.assertEqual(hparams["global_batch_size"], shown["trials"][-1]["config"]["train_batch_size"])

    def test_torchrun_stands_in_for_a_launcher_that_is_not_there(self):
        tools = self.dir / "tools"
        tools.mkdir()
        (tools / "torchrun").write_text('#!/bin/sh\nwhile [ "$1" != python3 ]; do shift; done\n'
                                        'WORLD_SIZE=2 RANK=0 exec "$@"\n')
        (tools / "torchrun").chmod(0o755)
        (tools / "python3").symlink_to(sys.executable)  # what PATH has may be a script for a shell that is not there
        for program in ("sh", "env"):
            (tools / program).symlink_to(shutil.which(program))
        self.environment["PATH"] = str(tools)
        result = self.run_form("random", "deepspeed.yaml", ".", *INCLUDE, "-mt", 2, "--output-dir", "out")
        self.assert_ok(result)
        self.assertIn("not in PATH", result.stdout)
        command = (self.dir / "out" / "best_cmd.txt").read_text()
        self.assertRegex(command, r"torchrun (--no_python --nproc_per_node 2|--nproc_per_node 2 --no_python) "
                                  r"python3 script.py")

    def test_a_script_with_the_flops_profilers_report_alone(self):
        self.write_experiment(
            ("entrypoint: python3 -m determined.launch.deepspeed python3 script.py", "entrypoint: python3 flops.py"),
            ("slots_per_trial: 2", "slots_per_trial: 1"))
        shutil.copy(FIXTURES / "experiment" / "flops.py", self.dir)
        config = self.read_json("ds_config.json")
        config["flops_profiler"] = {"enabled": True, "profile_step": 3, "output_file": "flops.txt"}
        self.write_config(config)
        # Two operands and no method: the form of the prototype, with the default searcher.
        self.assert_ok(self.run_form("deepspeed.yaml", ".", *INCLUDE, "-mt", 8, "--output-dir", "out"))
        trials = self.show(self.dir / "out")["trials"]
        measured = [t for t in trials if t["kind"] == "search" and t["outcome"] == "completed"]
        self.assertTrue(measured)
        for trial in measured:
            self.assertTrue((self.dir / "out" / "trials" / str(trial["id"]) / "flops_profiler.txt").exists())
            self.assertGreater(trial["metrics"]["FLOPS_per_gpu"], 0)
        self.assertEqual(self.read_json("out", "best_ds_config.json")["flops_profiler"], config["flops_profiler"])

    def test_the_test_method_runs_a_handful_of_trials(self):
        self.assert_ok(self.run_form("_test", "deepspeed.yaml", ".", *INCLUDE, "--output-dir", "out"))
        trials = self.show(self.dir / "out")["trials"]
        self.assertEqual([t["kind"] for t in trials].count("profile"), 1)
        self.assertLessEqual(len([t for t in trials if t["attempt"]]), 6)


class Options(ExperimentTest):
    def test_options_stand_anywhere_and_have_determineds_spellings(self):
        result = self.run_form("asha", "-mt", 5, "--start_profile-step", 2, "deepspeed.yaml", "-z", 1, 2, ".", "-r", 7,
                               "-m", "throughput", "--max-rungs", 3, "--divisor", 2, *INCLUDE, "--output-dir", "out")
        self.assert_ok(result)
        study = self.show(self.dir / "out")["study"]
        self.assertEqual((study["max_trials"], study["start_profile_step"], study["zero_stages"], study["seed"],
                          study["metric"]), (5, 2, [1, 2], 7, "throughput"))
        self.assertEqual(study["searcher"]["options"]["max-rungs"], 3)

    def test_a_search_runner_that_dies_is_taken_up_again(self):
        (self.dir / "runner.yaml").write_text("name: (DSAT) mine\nmax_restarts: 2\nresources: {slots_per_trial: 0}\n")
        process = subprocess.Popen(
            [HOST, "random", "deepspeed.yaml", ".", "-i", str(FIXTURES / "protocol_trial.py"), "-mt", "12",
             "--search-runner-config", "runner.yaml", "--output-dir", "out"],
            cwd=self.dir, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_process, process)
        for line in process.stdout:
            if line.split()[:2] == ["trial", "2"]:
                break
        (child,) = pathlib.Path("/proc/%d/task/%d/children" % (process.pid, process.pid)).read_text().split()
        os.kill(int(child), 9)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertIn("killed by signal Killed", err)
        self.assertIn("restart 1 of 2", err)
        shown = self.show(self.dir / "out")
        self.assertEqual(shown["study"]["name"], "(DSAT) mine")
        self.assertTrue(all(trial["outcome"] for trial in shown["trials"]))


BAD_FILES = [
    ("a tab", ("  slots_per_trial: 2", "\tslots_per_trial: 2"), ":11:1: a tab indents this line"),
    ("a loop of anchors", ("resources:\n", "resources: &r\n  loop: *r\n"), ":10:12: an alias"),
    ("a key twice", ("max_restarts: 0", "name: again"), ":4:1: the key 'name' is there twice"),
    ("no yaml", ("name: torchvision", "name: [torchvision"), "deepspeed.yaml:"),
    ("a misspelt key", ("entrypoint:", "entrypont:"), "did you mean entrypoint?"),
    ("no entrypoint", ("entrypoint: python3 -m determined.launch.deepspeed python3 script.py", ""),
     "has no entrypoint"),
    ("entrypoint of a wrong type",
     ("entrypoint: python3 -m determined.launch.deepspeed python3 script.py", "entrypoint: 3"),
     ":21:1: entrypoint must be"),
    ("shell syntax", ("python3 script.py", "python3 script.py && true"), "holds shell syntax ('&')"),
    ("a Trial class without its name", ("python3 script.py", "--trial model_def"), "give module:Class"),
    ("horovod", ("determined.launch.deepspeed", "determined.launch.horovod"), "starts through Horovod"),
    ("slots of a wrong type", ("slots_per_trial: 2", "slots_per_trial: two"),
     ":11:3: resources.slots_per_trial must be an integer of at least 1, it has \"two\""),
    ("a section of a wrong type",
     ("searcher:\n  name: single\n  metric: loss\n  max_length: 100\n", "searcher: asha\n"),
     "searcher must hold keys"),
    ("no configuration", ("  deepspeed_config: ds_config.json\n", ""), "hyperparameters.deepspeed_config is missing"),
    ("a configuration that is not there", ("ds_config.json", "nowhere.json"), "names nowhere.json"),
    ("two configurations", ("python3 script.py", "python3 script.py --deepspeed_config other.json"),
     "the entrypoint has other.json"),
    ("a range", ("model_name: resnet152", "lr: {type: log, minval: -5, maxval: -1, base: 10}"), "is a range (log)"),
    ("a batch size that differs", ("model_name: resnet152", "global_batch_size: 128"), "global_batch_size is 128"),
    ("ranks that differ", ("model_name: resnet152", "data_parallel_world_size: 4"), "data_parallel_world_size is 4"),
    ("a metric's direction", ("metric: loss", "metric: latency\n  smaller_is_better: false"), "leave the key out"),
    ("variables of a wrong form", ("- NCCL_DEBUG=INFO", "- NCCL_DEBUG"), "NAME=value"),
    ("a variable whose name a shell would run", ("- NCCL_DEBUG=INFO", "- 'A;touch x;B=1'"), "has the variable name"),
]


class BadInput(ExperimentTest):
    def assert_refused(self, result, message):
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertFalse(list(self.dir.rglob("dsat.db")), "something was run")

    def test_a_bad_experiment_file_is_one_line_with_its_place(self):
        for what, change, message in BAD_FILES:
            with self.subTest(what):
                self.write_experiment(change)
                result = self.run_form("asha", "deepspeed.yaml", ".")
                self.assert_refused(result, message)
                self.assertIn("deepspeed.yaml", result.stderr)

    def test_files_that_make_the_parser_run_for_ever_do_not(self):
        for text in (",a: 1\n", "[" * 200000, "- " * 200000, "a: [" + "{}, " * 200000 + "]", "? " * 5000,
                     "{a: 1}, ,\n"):
            with self.subTest(text[:10]):
                (self.dir / "deepspeed.yaml").write_text(text)
                self.assert_refused(self.run_form("asha", "deepspeed.yaml", "."), "deepspeed.yaml:1:")

    def test_a_bad_command_line_is_one_line(self):
        (self.dir / "model" / "results").mkdir(parents=True)
        (self.dir / "model" / "script.py").touch()
        for words, message in [
                (["ahsa", "deepspeed.yaml", "."], "unknown search method 'ahsa'"),
                (["asha"], "takes EXPERIMENT.yaml and MODEL_DIR"),
                (["asha", "-i", "script.py", "deepspeed.yaml", "."], "before -i, which takes every word"),
                (["asha", "deepspeed.yaml"], "takes EXPERIMENT.yaml and MODEL_DIR"),
                (["asha", "deepspeed.yaml", ".", "more"], "not also more"),
                (["asha", "nowhere.yaml", "."], "nowhere.yaml: no such file"),
                (["asha", ".", "."], "is a folder"),
                (["asha", "deepspeed.yaml", "nowhere"], "model directory nowhere: no such directory"),
                (["asha", "deepspeed.yaml", "script.py"], "model directory script.py: is a file"),
                (["asha", "deepspeed.yaml", ".", "--output-dir", "."], "lies inside the results"),
                (["asha", "deepspeed.yaml", ".", "--output-dir", ".."], "lies inside the results"),
                (["asha", "deepspeed.yaml", ".", "-i", "nowhere.py"], "nowhere.py: no such file or directory"),
                (["asha", "deepspeed.yaml", ".", "-i", "model/script.py"], "has a script.py of its own"),
                (["asha", "deepspeed.yaml", ".", "-i", "model/results", "model/../model/results"],
                 "two includes are called results"),
                (["asha", "deepspeed.yaml", ".", "-i"], "--include (-i) needs a value"),
                (["asha", "deepspeed.yaml", ".", "--max-rungs", "many"], "max-rungs"),
                (["asha", "deepspeed.yaml", ".", "--divisor", "1.5"], "divisor"),
                (["asha", "deepspeed.yaml", ".", "--searcher", "binary"], "--searcher binary"),
                (["asha", "deepspeed.yaml", ".", "--ds-config", "x.json"], "takes hyperparameters.deepspeed_config"),
                (["asha", "deepspeed.yaml", ".", "--max-search-runner-restarts", "-1"], "max-search-runner-restarts"),
                (["asha", "deepspeed.yaml", ".", "--search-runner-config", "nowhere.yaml"],
                 "nowhere.yaml: no such file"),
                (["asha", "deepspeed.yaml", ".", "--trial-cwd", "keep", *INCLUDE], "leave --trial-cwd keep out"),
                (["--quiet", "asha", "deepspeed.yaml", "."], "begins the experiment form and comes first")]:
            with self.subTest(" ".join(map(str, words))):
                self.assert_refused(self.run_form(*words), message)

    def test_more_slots_than_there_are(self):
        result = self.run_form("asha", "deepspeed.yaml", ".", "--slots", 1)
        self.assert_refused(result, "deepspeed.yaml: resources.slots_per_trial is 2")

    def test_a_model_directory_that_becomes_unreadable_names_no_result(self):
        result = self.run_form("asha", "deepspeed.yaml", ".")  # without its include the script fails
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("protocol_trial", result.stderr)


if __name__ == "__main__":
    unittest.main()
