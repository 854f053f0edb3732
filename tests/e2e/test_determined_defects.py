"""What went wrong for the users of Determined's dsat, and does not here. docs/defects.md lists it."""
import json
import sqlite3
import subprocess
import unittest

from support import BUILD, HOST
from test_experiment_form import INCLUDE, ExperimentTest

SCRIPTED = BUILD / "tests/fixture-plugins/libscripted.so"
SCRIPT = """import json
import os
import sys
sys.path.insert(0, ".")
import protocol_trial
config = json.load(open(os.environ["DSAT_DS_CONFIG"]))
profile = config["autotuning"].get("model_info", {}).get("profile", False)
micro_batch = config["train_micro_batch_size_per_gpu"]
%s
sys.argv = ["protocol_trial.py", "--deepspeed_config", os.environ["DSAT_DS_CONFIG"]]
sys.exit(protocol_trial.main())
"""


class DefectTest(ExperimentTest):
    def search(self, *options, body="", hyperparameters="", status=0):
        """One search over a script of its own; its trials."""
        (self.dir / "script.py").write_text(SCRIPT % body)
        self.write_experiment(
            ("entrypoint: python3 -m determined.launch.deepspeed python3 script.py",
             "entrypoint: python3 -S -E script.py"),
            ("slots_per_trial: 2", "slots_per_trial: 1"), ("  model_name: resnet152", hyperparameters))
        method, *rest = options
        begin = [method] if method else []  # none: an option names the searcher
        self.result = self.run_form(*begin, "deepspeed.yaml", ".", *INCLUDE, *rest, "--output-dir", "out")
        self.assert_ok(self.result, status)
        return self.show(self.dir / "out")["trials"]


class AshasFlags(DefectTest):
    def test_integers_are_integers(self):
        self.search("asha", "-mt", 6, "--max-rungs", 3, "--min-binary-search-trials", 2, "--divisor", 3,
                    "--asha-early-stopping", 1)
        options = self.show(self.dir / "out")["study"]["searcher"]["options"]
        names = ("max-rungs", "min-binary-search-trials", "divisor", "asha-early-stopping")
        self.assertEqual([options[name] for name in names], [3, 2, 3, 1])


class Duplicates(DefectTest):
    def test_a_configuration_runs_once(self):
        twice = [{"try": {"train_micro_batch_size_per_gpu": 5}}] * 2  # the profile measures 2
        trials = self.search(None, "--searcher", SCRIPTED, "--searcher.script", json.dumps({"start": twice}))
        (again,) = [trial for trial in trials if trial["kind"] == "duplicate"]
        first = trials[again["duplicate_of"]]
        self.assertEqual((first["outcome"], first["attempt"], first["config"]), ("completed", 1, again["config"]))
        self.assertEqual((again["attempt"], again["metrics"], again["outcome"]),
                         (0, first["metrics"], first["outcome"]))

    def test_a_search_measures_no_configuration_twice(self):
        one_configuration = """  overwrite_deepspeed_args:
    zero_optimization:
      reduce_bucket_size: {type: categorical, vals: [5.0e+7]}
      allgather_bucket_size: {type: categorical, vals: [5.0e+7]}"""
        trials = self.search("asha", "-mt", 12, "-z", 1, hyperparameters=one_configuration)
        measured = [json.dumps(t["config"], sort_keys=True) for t in trials if t["attempt"] and t["kind"] == "search"]
        self.assertGreater(len(measured), 3)
        self.assertEqual(len(measured), len(set(measured)))


class Failures(DefectTest):
    def test_a_bug_in_the_script_is_not_searched_for_its_batch_size(self):
        trials = self.search("binary", "-mt", 12,
                             body="if micro_batch > 40: raise ValueError('loss is not what it was')")
        failed = [t["id"] for t in trials if t["outcome"] == "failed"]
        self.assertTrue(failed)
        self.assertNotIn("out_of_memory", [t["outcome"] for t in trials])
        below = [t for t in trials if t["parent"] in failed and t["outcome"] == "failed"]
        self.assertLessEqual(len(below), 2, "a bug was searched for its batch size")

    def test_a_bug_at_every_batch_size_ends_the_search_with_its_own_words(self):
        trials = self.search("binary", body="if not profile: raise ValueError('loss is not what it was')", status=1)
        self.assertIn("ValueError: loss is not what it was", self.result.stderr)
        self.assertLessEqual(len([t for t in trials if t["outcome"] == "failed"]), 4)

    def bug_above(self, largest_without_bug):
        body = f"if micro_batch > {largest_without_bug}: raise ValueError('loss is not what it was')"
        trials = self.search("binary", "-mt", 10, body=body)
        self.assertIn("--max-micro-batch", self.result.stderr + self.result.stdout)
        self.assertGreaterEqual(len([t for t in trials if t["outcome"] == "failed"]), 3)

    def test_a_bug_above_a_batch_size_that_ran_is_a_ceiling_and_ends_nothing(self):
        self.bug_above(16)

    def test_a_bug_in_a_later_profile_trial_ends_nothing(self):
        self.bug_above(8)  # the profile measures up to 10


class ActivationMemory(DefectTest):
    def test_none_at_all_is_no_division_by_zero(self):
        trials = self.search("asha", "-mt", 10, body="if profile: protocol_trial.ACTIVATION_BYTES = 0")
        self.assertEqual(trials[0]["metrics"]["activation_mem_per_gpu"], 0)
        self.assertTrue([t for t in trials if t["kind"] == "search" and t["outcome"] == "completed"])


class OptimizerAndPrecision(DefectTest):
    def bytes_of(self, optimizer, precision):
        result = subprocess.run([HOST, "estimate", "--num-params", "1e9", "--world-size", "1", "--optimizer", optimizer,
                                 "--precision", precision, "--json"], capture_output=True, text=True, timeout=60)
        return json.loads(result.stdout)["stages"][0]["model_state_bytes"]

    def test_they_are_what_the_configuration_says(self):
        self.assertEqual(self.bytes_of("adam", "fp16"), 16e9)
        self.assertEqual(self.bytes_of("adam", "bf16"), 16e9)
        self.assertLess(self.bytes_of("sgd", "bf16"), self.bytes_of("sgd-momentum", "bf16"))
        self.assertLess(self.bytes_of("sgd-momentum", "bf16"), self.bytes_of("adam", "bf16"))
        overwrites = """  overwrite_deepspeed_args:
    fp16: {enabled: false}
    bf16: {enabled: true}
    zero_allow_untested_optimizer: true
    optimizer: {type: SGD, params: {lr: 0.1}}"""
        for trial in self.search("random", "-mt", 4, hyperparameters=overwrites):
            self.assertEqual(trial["config"]["optimizer"]["type"], "SGD")
            self.assertTrue(trial["config"]["bf16"]["enabled"])


class NoCluster(DefectTest):
    def test_one_command_and_a_journal_are_all_there_is(self):
        for name in list(self.environment):
            if name.startswith("DET_"):
                del self.environment[name]
        self.search("random", "-mt", 3)
        with sqlite3.connect("file:%s?mode=ro" % (self.dir / "out" / "dsat.db"), uri=True) as journal:
            self.assertEqual(journal.execute("pragma integrity_check").fetchone(), ("ok",))


class StageThree(DefectTest):
    def test_it_stays_in_the_search_once_another_stage_has_run(self):
        trials = [t for t in self.search("random", "-mt", 20) if t["kind"] == "search" and t["attempt"]]
        stages = [t["config"]["zero_optimization"]["stage"] for t in trials]
        first = next(i for i, t in enumerate(trials) if stages[i] < 3 and t["outcome"] == "completed")
        self.assertIn(3, stages[first + 1:])

    def test_its_own_keys_a_global_batch_and_throughput_are_tuned(self):
        keys = {"zero_optimization.stage3_prefetch_bucket_size": [1e7, 5e7],
                "zero_optimization.stage3_param_persistence_threshold": [1e4, 1e5],
                "zero_optimization.stage3_max_live_parameters": [1e8, 1e9]}
        (self.dir / "space.json").write_text(json.dumps(keys))
        self.write_config({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}})
        trials = self.search("random", "-mt", 8, "-z", 3, "-m", "throughput", "--global-batch", 64, "--space",
                             self.dir / "space.json")
        searched = [t["config"] for t in trials if t["kind"] == "search"]
        self.assertTrue(searched)
        for config in searched:
            self.assertEqual(config["train_batch_size"], 64)
            for key, values in keys.items():
                self.assertIn(config["zero_optimization"][key.partition(".")[2]], values)


if __name__ == "__main__":
    unittest.main()
