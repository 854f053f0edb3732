"""DeepSpeed's own command line, `dsat-host --autotuning tune|run ...`, on a stand-in for its launcher: what is read of
the autotuning section, what is left behind, what is refused. Some of these tests state a behaviour that DeepSpeed's
own tuner lacks; docs/defects.md names them.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from support import CONFIG, FIXTURES, HOST, HostTest
from waiting import wait_until

FAST = {"tuner_num_trials": 6}


class DeepspeedForm(HostTest):
    def setUp(self):
        super().setUp()
        # The script by a short name, as people have it, and the launcher first in PATH.
        (self.dir / "train.py").write_text((FIXTURES / "protocol_trial.py").read_text())
        self.environment = dict(os.environ, PATH="%s:%s" % (FIXTURES / "bin", os.environ["PATH"]))
        self.results = self.dir / "autotuning_results"

    def write_section(self, section=None, **config):
        self.write_config({**CONFIG, "autotuning": {"enabled": True, **FAST, **(section or {})}, **config})

    def host(self, *arguments):
        return subprocess.run([HOST, *map(str, arguments)], cwd=self.dir, env=self.environment, capture_output=True,
                              text=True, timeout=240)

    def autotuning(self, *options, mode="tune", script=("train.py", "--deepspeed_config", "ds_config.json"), status=0):
        result = self.host("--autotuning", mode, *options, *script)
        self.assert_ok(result, status)
        return result

    def study(self):
        return self.show(self.results / "dsat")

    def load(self, *parts):
        return json.loads(self.results.joinpath(*parts).read_text())


class Output(DeepspeedForm):
    def test_everything_lies_where_deepspeed_puts_it(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        trials = [t for t in self.study()["trials"] if t["kind"] != "duplicate" and t["attempt"] > 0]
        folders = sorted(p.name for p in self.results.iterdir() if p.is_dir() and p.name != "dsat")
        self.assertEqual(len(folders), len(trials))
        self.assertIn("profile_model_info", folders)
        for name in folders:
            self.assertRegex(name, r"^(profile_model_info|z[0-3]_gas1_tmbspg\d+)")
            experiment = self.load(name, "exp.json")
            self.assertEqual(experiment["name"], name)
            self.assertEqual(experiment["num_gpus"], 1)
            for file in ("cmd.txt", "ds_config.json", "stdout.log", "stderr.log"):
                self.assertTrue((self.results / name / file).is_file(), (name, file))
            described = json.loads((self.dir / "autotuning_exps" / (name + ".json")).read_text())
            self.assertEqual(described["ds_config"], experiment["ds_config"])
            if experiment["outcome"] == "completed":
                result = "model_info.json" if name.startswith("profile") else "metrics.json"
                self.assertTrue((self.results / name / result).is_file())
        self.assertIn("train.py", (self.results / folders[0] / "cmd.txt").read_text())

    def test_trials_are_written_as_they_end(self):
        self.write_section({"fast": False, "tuner_type": "random", "tuner_num_trials": 100000,
                            "tuner_early_stopping": 100000})
        host = self.start_host([HOST, "--autotuning", "tune", "--num_gpus", "1", "train.py", "--deepspeed_config",
                                "ds_config.json"], env=self.environment)
        wait_until(lambda: len(list(self.results.glob("z*/metrics.json"))) > 1, "results of two trials")
        host.kill()
        host.wait()
        self.assertNotEqual(self.study()["study"]["status"], "completed", "the study had ended")
        name = next(self.results.glob("z*/metrics.json")).parent.name
        self.assertEqual(self.load(name, "exp.json")["outcome"], "completed")

    def test_the_best_configuration_and_its_command(self):
        self.write_section()
        result = self.autotuning("--num_gpus", 1)
        best = self.load("ds_config_optimal.json")
        self.assertNotIn("autotuning", best)
        self.assertEqual(best["train_batch_size"],
                         best["train_micro_batch_size_per_gpu"] * best["gradient_accumulation_steps"])
        command = (self.results / "cmd_optimal.txt").read_text()
        self.assertRegex(command, r"deepspeed (.* )?--num_gpus 1 (.* )?train\.py ")
        self.assertIn(str(self.results / "ds_config_optimal.json"), command)
        self.assertIn(str(self.results), result.stdout)
        done = subprocess.run(["sh", "-c", command], cwd=self.dir, env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_summary_is_deepspeeds_table(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        lines = (self.results / "summary.txt").read_text().splitlines()
        self.assertEqual(lines[0].split("|")[1:5],
                         [" tuning_space   ", "   num_experiments ", "   best_metric_val ", lines[0].split("|")[4]])
        self.assertEqual(lines[0].split("|")[4].strip(), "best_exp_name")
        self.assertRegex(lines[1], r"^\|:-+\|-+:\|-+:\|:-+\|$")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:] if line.startswith("|")]
        self.assertEqual(rows[-1][0], "global")
        measured = [t for t in self.study()["trials"] if t["kind"] != "duplicate" and t["attempt"] > 0
                    and not t["overrides"].get("autotuning")]
        self.assertEqual(int(rows[-1][1]), len(measured))
        self.assertEqual(sum(int(row[1]) for row in rows[:-1]), len(measured))
        best = max(t["metrics"]["throughput"] for t in measured if t["outcome"] == "completed")
        self.assertAlmostEqual(float(rows[-1][2]), best, delta=1e-3 * best)
        self.assertTrue((self.results / rows[-1][3] / "exp.json").is_file())
        self.assertRegex(lines[-1], r"^Tuning completed in \d+:\d\d:\d\d\.\d{6}\. "
                                    r"Total number of experiments: %d\.$" % len(measured))

    def test_run_trains_with_the_best_configuration(self):
        (self.dir / "train.py").write_text(
            "import json, os, sys\n" + (FIXTURES / "protocol_trial.py").read_text().replace(
                "def main():\n", "def main():\n    if 'DSAT_TRIAL_ID' not in os.environ:\n"
                "        config = sys.argv[sys.argv.index('--deepspeed_config') + 1]\n"
                "        print('TRAINED', json.load(open(config))['train_micro_batch_size_per_gpu'])\n"
                "        return 0\n"))
        self.write_section()
        result = self.autotuning("--num_gpus", 1, mode="run")
        best = self.load("ds_config_optimal.json")
        self.assertIn("TRAINED %d" % best["train_micro_batch_size_per_gpu"], result.stdout)

    def test_other_places(self):
        self.write_section({"results_dir": "out/results", "exps_dir": "out/exps"})
        self.autotuning("--num_gpus", 1)
        self.assertTrue((self.dir / "out/results/summary.txt").is_file())
        self.assertTrue((self.dir / "out/exps/profile_model_info.json").is_file())
        self.assertFalse(self.results.exists())


class Section(DeepspeedForm):
    def test_deepspeeds_defaults_hold_where_there_is_a_section(self):
        self.write_section()
        study = self.autotuning("--num_gpus", 1) and self.study()["study"]
        self.assertEqual(study["metric"], "throughput")
        self.assertEqual(study["max_micro_batch"], 1024)
        self.assertEqual(study["max_trials"], 6)
        self.assertEqual(study["zero_stages"], [1], "the stage that the configuration names")
        for trial in self.study()["trials"]:
            extra = set(trial["overrides"].get("zero_optimization", {})) - {"stage"}
            self.assertEqual(extra, set(), "fast tunes stage and micro batch only")

    def test_keys_hold_and_options_beat_them(self):
        self.write_section({"metric": "latency", "fast": False, "start_step": 4, "end_step": 7,
                            "max_train_batch_size": 8, "min_train_micro_batch_size_per_gpu": 2,
                            "max_train_micro_batch_size_per_gpu": 16, "tuner_type": "random",
                            "tuner_num_trials": 50}, zero_optimization={"stage": "all"})
        result = self.autotuning("--num_gpus", 1, "--max-trials", 6, "--max-micro-batch", 6)
        study = self.study()["study"]
        self.assertEqual((study["metric"], study["direction"]), ("latency", "minimize"))
        self.assertEqual((study["start_profile_step"], study["end_profile_step"]), (4, 7))
        self.assertEqual((study["min_micro_batch"], study["max_micro_batch"], study["max_train_batch_size"]), (2, 6, 8))
        self.assertEqual((study["searcher"]["name"], study["max_trials"]), ("random", 6))
        self.assertEqual(study["zero_stages"], [0, 1, 2, 3])
        self.assertIn("tuner_type random: ", result.stdout)
        config = json.loads((self.results / "dsat/trials/1/ds_config.json").read_text())
        self.assertEqual(config["autotuning"]["end_profile_step"], 7)
        self.assertEqual(config["autotuning"]["max_train_batch_size"], 8, "the user's own keys are kept")

    def test_every_tuner_type_names_its_searcher(self):
        for tuner, searcher in (("gridsearch", "grid"), ("random", "random"), ("model_based", "guided")):
            self.write_section({"tuner_type": tuner, "tuner_num_trials": 4, "overwrite": True})
            result = self.autotuning("--num_gpus", 1)
            self.assertIn("tuner_type %s: " % tuner, result.stdout)
            self.assertEqual(self.study()["study"]["searcher"]["name"], searcher)

    def test_a_known_model_size_spares_its_trial(self):
        self.write_section({"model_info": {"num_params": 25000000}})
        self.autotuning("--num_gpus", 1)
        self.assertFalse((self.results / "profile_model_info").exists())
        self.assertEqual(self.study()["profile"]["num_params"], 25000000)

    def test_early_stopping_ends_a_search_that_finds_nothing_better(self):
        self.write_section({"fast": False, "tuner_early_stopping": 1, "tuner_num_trials": 40})
        result = self.autotuning("--num_gpus", 1, "--searcher", "binary")
        study = self.study()
        self.assertLess(len(study["trials"]), 40)
        self.assertIn("early stopping", (self.results / "dsat/summary.txt").read_text(), result.stdout)

    def test_the_section_holds_for_a_plain_command_too(self):
        self.write_section({"metric": "throughput", "fast": True, "tuner_num_trials": 5,
                            "arg_mappings": {"train_micro_batch_size_per_gpu": "--batch"}})
        self.assert_ok(self.host("--output-dir", "out", "--", "deepspeed", "--num_gpus", 1, "train.py", "--batch", 1,
                                 "--deepspeed_config", "ds_config.json"))
        study = self.show(self.dir / "out")
        self.assertEqual((study["study"]["metric"], study["study"]["max_trials"]), ("throughput", 5))
        last = study["trials"][-1]
        self.assertIn("--batch %d" % last["config"]["train_micro_batch_size_per_gpu"],
                      (self.dir / "out/trials" / str(last["id"]) / "cmd.txt").read_text())
        self.assertFalse(self.results.exists(), "results in DeepSpeed's shape are for DeepSpeed's form")

    def test_a_disabled_section_says_nothing_of_a_plain_command(self):
        self.write_section({"enabled": False, "metric": "throughput"})
        self.assert_ok(self.host("--output-dir", "out", "--max-trials", 4, "--", "deepspeed", "--num_gpus", 1,
                                 "train.py", "--deepspeed_config", "ds_config.json"))
        self.assertEqual(self.show(self.dir / "out")["study"]["metric"], "FLOPS_per_gpu")

    def test_offload_sections_are_kept_and_may_be_tuned(self):
        self.write_section(zero_optimization={"stage": [2, 3],
                                              "offload_optimizer": {"device": "cpu", "pin_memory": True},
                                              "offload_param": {"device": ["cpu", "none"]}})
        self.autotuning("--num_gpus", 1, "--max-trials", 24, "--searcher", "grid")
        devices = set()
        for trial in self.study()["trials"]:
            zero = trial["config"]["zero_optimization"]
            self.assertEqual(zero["offload_optimizer"], {"device": "cpu", "pin_memory": True})
            devices.add((zero["stage"], zero["offload_param"]["device"]))
        self.assertLessEqual(devices, {(2, "none"), (3, "cpu"), (3, "none")})
        self.assertLessEqual({(3, "cpu"), (3, "none")}, devices)
        self.assertEqual(self.load("ds_config_optimal.json")["zero_optimization"]["offload_optimizer"]["device"], "cpu")


class PublishedExamples(DeepspeedForm):
    def test_a_language_model_with_auto_values_and_mapped_arguments(self):
        self.write_config({
            "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "fp16": {"enabled": True},
            "autotuning": {"enabled": True, "tuner_num_trials": 6, "arg_mappings": {
                "train_micro_batch_size_per_gpu": "--per_device_train_batch_size",
                "gradient_accumulation_steps ": "--gradient_accumulation_steps"}}})
        result = self.autotuning("--num_nodes=1", "--num_gpus=2", mode="run", script=(
            "train.py", "--deepspeed", "ds_config.json", "--model_name_or_path", "gpt2-large", "--do_train", "--fp16",
            "--per_device_train_batch_size", 1, "--gradient_accumulation_steps", 1))
        self.assertIn("autotuning.arg_mappings.gradient_accumulation_steps ' has stray", result.stdout)
        names = [p.name for p in self.results.iterdir() if re.match("z", p.name)]
        self.assertTrue(names)
        for name in names:
            command = (self.results / name / "cmd.txt").read_text()
            micro_batch = self.load(name, "ds_config.json")["train_micro_batch_size_per_gpu"]
            self.assertIn("--per_device_train_batch_size %d --gradient_accumulation_steps 1" % micro_batch, command)
            self.assertNotIn("auto ", command)

    def test_a_classifier_with_several_numbers_of_devices(self):
        self.write_config({
            "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "fp16": {"enabled": True},
            "zero_optimization": {"stage": [1, 2]},
            "autotuning": {"enabled": True, "num_gpus": [2, 4], "tuner_num_trials": 8, "arg_mappings": {
                "train_micro_batch_size_per_gpu": "--per_device_train_batch_size",
                "gradient_accumulation_steps": "--gradient_accumulation_steps"}}})
        self.autotuning("--slots", 4, script=(
            "train.py", "--deepspeed", "ds_config.json", "--model_name_or_path", "microsoft/deberta-v2-xxlarge",
            "--per_device_train_batch_size", 1, "--gradient_accumulation_steps", 1))
        best = self.load("ds_config_optimal.json")
        self.assertIn(best["train_batch_size"] // best["train_micro_batch_size_per_gpu"], (2, 4))
        sizes = {self.load(p.name, "exp.json")["num_gpus"] for p in self.results.iterdir() if p.name.startswith("z")}
        self.assertEqual(sizes, {2, 4})
        self.assertIn(best["zero_optimization"]["stage"], (1, 2))


class ExistingResults(DeepspeedForm):
    def test_the_same_request_is_not_run_again(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        before = self.study()["trials"]
        result = self.autotuning("--num_gpus", 1)
        self.assertIn("reused", result.stdout)
        self.assertEqual(self.study()["trials"], before)

    def test_a_raised_limit_goes_on_from_them(self):
        self.write_section({"fast": False})
        self.autotuning("--num_gpus", 1)
        before = self.study()["trials"]
        self.write_section({"fast": False, "tuner_num_trials": 9})
        self.autotuning("--num_gpus", 1)
        after = self.study()["trials"]
        self.assertEqual(after[:len(before)], before)
        self.assertGreater(len(after), len(before))
        names = [p for p in self.results.iterdir() if (p / "exp.json").is_file()]
        self.assertEqual(len(names), len([t for t in after if t["attempt"] > 0]))

    def test_a_raised_time_budget_goes_on_from_them(self):
        # Later trials wait for a file, so that the time ends the search, however fast the machine is.
        wait = ("import os, time\nwhile int(os.environ.get('DSAT_TRIAL_ID', 0)) > 3 and not os.path.exists('go'):\n"
                "    time.sleep(0.02)\n")
        (self.dir / "train.py").write_text(wait + (FIXTURES / "protocol_trial.py").read_text())
        self.write_section({"fast": False, "tuner_type": "random", "tuner_num_trials": 100000})
        self.autotuning("--num_gpus", 1, "--time-budget", "3s")
        self.assertIn("time budget", self.study()["study"]["reason"])
        before = self.study()["trials"]
        self.assertIn("reused", self.autotuning("--num_gpus", 1, "--time-budget", "3s").stdout)
        self.assertEqual(len(self.study()["trials"]), len(before), "it has ended: no more of the same time")
        (self.dir / "go").touch()
        again = self.start_host([HOST, "--autotuning", "tune", "--num_gpus", "1", "--time-budget", "1h", "train.py",
                                 "--deepspeed_config", "ds_config.json"], env=self.environment)
        wait_until(lambda: len(self.study()["trials"]) > len(before), "a further trial")
        again.send_signal(signal.SIGINT)
        again.communicate(timeout=60)
        self.assertEqual([t["id"] for t in self.study()["trials"][:len(before)]], [t["id"] for t in before])

    def test_another_request_is_refused_with_the_reason(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        before = (self.results / "summary.txt").read_text()
        script = (self.dir / "train.py").read_text()
        for change, words, options in (
                (lambda: None, "another command ('--master_port' here, 'train.py' there)",
                 ["--num_gpus", 1, "--master_port", 4000]),
                (lambda: None, "other options", ["--num_gpus", 1, "--max-micro-batch", 4]),
                (lambda: self.write_section(gradient_clipping=0.5), "another configuration", ["--num_gpus", 1]),
                (lambda: (self.write_section(), (self.dir / "train.py").write_text("# edited\n" + script)),
                 "another version of the script", ["--num_gpus", 1])):
            change()
            result = self.autotuning(*options, status=2)
            self.assertIn(words, result.stderr)
            self.assertIn("overwrite", result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertEqual((self.results / "summary.txt").read_text(), before)

    def test_show_and_resume_take_the_folder_of_the_results(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        self.assertEqual(self.show(self.results), self.show(self.results / "dsat"))
        resumed = self.host("resume", self.results)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertIn("--max-trials above", resumed.stdout)

    def test_a_mended_script_begins_anew_where_nothing_was_measured(self):
        script = (self.dir / "train.py").read_text()
        (self.dir / "train.py").write_text("import no_such_package\n" + script)
        self.write_section()
        command = ["--autotuning", "tune", "--max-trials", 3, "train.py", "--deepspeed", "ds_config.json"]
        result = self.host(*command)
        self.assertEqual(result.returncode, 1, result.stderr)
        (self.dir / "train.py").write_text(script)
        result = self.host(*command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("no_such_package", (self.results / "summary.txt").read_text())

    def test_overwrite_begins_anew(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        old = {p.name for p in self.results.iterdir() if p.is_dir()}
        self.write_section({"overwrite": True}, zero_optimization={"stage": 3})
        self.autotuning("--num_gpus", 1)
        new = {p.name for p in self.results.iterdir() if p.is_dir()}
        self.assertTrue(all(name.startswith(("z3", "profile", "dsat")) for name in new), new)
        self.assertTrue(old - new)

    def test_another_output_dir_is_refused_and_the_studys_own_is_named(self):
        self.write_section()
        self.autotuning("--num_gpus", 1)
        refused = self.autotuning("--num_gpus", 1, "--output-dir", "elsewhere", status=2)
        self.assertIn("%s: leave --output-dir out" % (self.results / "dsat"), refused.stderr)
        shutil.rmtree(self.results)
        self.autotuning("--num_gpus", 1, "--output-dir", "elsewhere")
        self.assertFalse((self.results / "dsat").exists(), "the study lies elsewhere")
        for other in ([], ["--output-dir", "third"]):
            refused = self.autotuning("--num_gpus", 1, *other, status=2)
            self.assertIn("%s: type --output-dir=elsewhere" % (self.dir / "elsewhere"), refused.stderr)
            self.assertEqual(len(refused.stderr.splitlines()), 1)
        self.assertIn("reused", self.autotuning("--num_gpus", 1, "--output-dir", "elsewhere").stdout)

    def test_results_that_are_not_dsats_are_not_touched(self):
        folder = self.results / "z1_gas1_tmbspg3"
        folder.mkdir(parents=True)
        (folder / "exp.json").write_text("{}")
        self.write_section()
        result = self.autotuning("--num_gpus", 1, status=2)
        self.assertIn("\"overwrite\": true", result.stderr)
        self.assertEqual([p.name for p in self.results.iterdir()], ["z1_gas1_tmbspg3"])


class Refused(DeepspeedForm):
    def refused(self, arguments, *words):
        result = self.host(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertFalse(self.results.exists(), "something was run")

    SCRIPT = ("train.py", "--deepspeed_config", "ds_config.json")

    def test_command_lines(self):
        self.write_section()
        self.refused(["--autotuning", "train.py"], "--autotuning", "tune or run")
        self.refused(["--autotuning", "tune"], "no SCRIPT")
        self.refused(["--autotuning", "tune", "deepspeed", *self.SCRIPT], "no script 'deepspeed'")
        self.refused(["--autotuning", "tune", "--num_gpu", 2, *self.SCRIPT], "--num_gpu", "--num-gpus")
        self.refused(["--master_port", 2000, "--", *self.SCRIPT], "--master_port", "dsat-host --autotuning tune")
        self.refused(["--autotuning", "tune", "train.py"], "--deepspeed_config")
        self.refused(["--autotuning", "tune", "--launcher", "carrier-pigeon", *self.SCRIPT], "carrier-pigeon", "pdsh")

    def test_hosts_are_looked_at_before_what_reaches_them(self):
        self.write_section()
        (self.dir / "hosts").write_text("w1 slots=2\nw2 slots=0\n")
        launch = ["--autotuning", "tune", "--launcher", "slurm"]
        self.refused([*launch, "--hostfile", "hosts", *self.SCRIPT], "hosts:2: w2 has slots=0")
        self.refused([*launch, "--num_nodes", 2, *self.SCRIPT], "num_nodes")
        (self.dir / "hosts").write_text("w1 slots=2\nw2 slots=2\n")
        without_slurm = self.dir / "bin"
        without_slurm.mkdir()
        for tool in ("python3", "sh", "env"):
            (without_slurm / tool).symlink_to(shutil.which(tool))
        self.environment["PATH"] = "%s:%s" % (FIXTURES / "bin", without_slurm)
        self.refused([*launch, "--hostfile", "hosts", *self.SCRIPT], "srun, which is not in PATH")

    def test_a_missing_launcher(self):
        self.write_section()
        self.environment["PATH"] = "/usr/bin:/bin"
        self.refused(["--autotuning", "tune", *self.SCRIPT], "deepspeed")

    def test_the_tuner_inside_a_command(self):
        self.write_section()
        self.refused(["--", "deepspeed", "--autotuning", "tune", *self.SCRIPT], "dsat-host --autotuning tune")

    def test_sections_of_wrong_types(self):
        for section, *words in (
                ({"metric": 3}, "autotuning.metric", "3"),
                ({"metric": "speed"}, "speed", "throughput"),
                ({"fast": "yes"}, "autotuning.fast", "true or false"),
                ({"tuner_type": "genetic"}, "genetic", "model_based"),
                ({"tuner_num_trials": 0}, "tuner_num_trials", "0"),
                ({"start_profile_step": 9, "end_profile_step": 2}, "start_profile_step", "9"),
                ({"min_train_micro_batch_size_per_gpu": 8, "max_train_micro_batch_size_per_gpu": 2}, "8", "2"),
                ({"arg_mappings": ["--batch"]}, "arg_mappings"),
                ({"arg_mappings": {"train_micro_batch_size_per_gpu": "batch"}}, "names --batch", "does not have"),
                ({"arg_mappings": {"train_micro_batch_size_per_gpu": "--"}}, "arg_mappings", "--"),
                ({"arg_mappings": {"train_micro_batch_size": "--batch"}}, "train_micro_batch_size_per_gpu"),
                ({"model_info": {"num_params": -5}}, "model_info.num_params", "-5"),
                ({"num_gpus": [0]}, "num_gpus"),
                ({"num_gpus": "four"}, "num_gpus", "four")):
            with self.subTest(section):
                self.write_section(section)
                self.refused(["--autotuning", "tune", *self.SCRIPT], *words)
        self.write_config({**CONFIG, "autotuning": [1]})
        self.refused(["--autotuning", "tune", *self.SCRIPT], "autotuning", "object")


class Robustness(DeepspeedForm):
    """What ends, hangs or misleads DeepSpeed's own tuner."""

    def test_a_trial_without_a_metric_costs_no_result(self):
        (self.dir / "train.py").write_text((FIXTURES / "protocol_trial.py").read_text().replace(
            "def main():\n", "def main():\n    if os.environ['DSAT_TRIAL_ID'] == '3':\n        return 1\n"))
        self.write_section()
        self.autotuning("--num_gpus", 1)
        outcomes = [t["outcome"] for t in self.study()["trials"]]
        self.assertEqual(outcomes[3], "failed")
        self.assertIn("completed", outcomes)
        self.assertTrue((self.results / "ds_config_optimal.json").is_file())

    def test_a_trial_that_hangs_is_ended_and_the_reason_kept(self):
        self.write_section()
        result = self.autotuning("--num_gpus", 1, "--trial-timeout", "2s", status=1, script=(
            "train.py", "--deepspeed_config", "ds_config.json", "--misbehave", "hang"))
        self.assertRegex(result.stdout + result.stderr, "timed.out")
        self.assertEqual(self.load("profile_model_info", "exp.json")["outcome"], "timed_out")

    def test_no_configuration_comes_with_the_reason(self):
        self.write_section()
        result = self.autotuning("--num_gpus", 1, status=1, script=(
            "train.py", "--deepspeed_config", "ds_config.json", "--misbehave", "typo"))
        self.assertIn("NameError", result.stderr)
        self.assertTrue((self.results / "summary.txt").is_file())
        self.assertFalse((self.results / "ds_config_optimal.json").exists())

    def test_the_same_seed_gives_the_same_search(self):
        def decisions(results_dir, hash_seed):
            self.environment["PYTHONHASHSEED"] = hash_seed
            self.write_section({"results_dir": results_dir, "fast": False, "tuner_type": "gridsearch"})
            self.autotuning("--num_gpus", 1)
            return self.decisions(self.dir / results_dir / "dsat")
        self.assertEqual(decisions("first", "1"), decisions("second", "2"))


if __name__ == "__main__":
    unittest.main()
