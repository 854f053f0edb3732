"""Studies whose script has its own limits, or a bad moment: each ends with the right configuration all the same."""
import importlib.util
import sys
import unittest

from support import FIXTURES, HostTest

spec = importlib.util.spec_from_file_location("protocol_trial", FIXTURES / "protocol_trial.py")
protocol_trial = importlib.util.module_from_spec(spec)
spec.loader.exec_module(protocol_trial)

TRIALS = 20

# Its step takes 20 ms, and its engine counts the samples of the configured batch.
SAME_TIME = """
import json, sys
config = json.load(open(sys.argv[-1]))
tuning = config["autotuning"]
if tuning.get("model_info", {}).get("profile"):
    json.dump({"num_params": 1e6, "trainable_num_params": 1e6}, open(tuning["model_info_path"], "w"))
else:
    json.dump({"latency": 2e4, "throughput": config["train_batch_size"] / 0.02}, open(tuning["metric_path"], "w"))
"""


def figure(stage, micro_batch):
    zero = {"stage": stage, "reduce_bucket_size": 1e7, "overlap_comm": True}
    config = {"train_micro_batch_size_per_gpu": micro_batch, "zero_optimization": zero}
    return protocol_trial.measure(config, 1)[0]["FLOPS_per_gpu"]


class Ceilings(HostTest):
    def study(self, *flags, name="out", options=()):
        result = self.run_host(["--max-trials", TRIALS, "--output-dir", name, *options], self.command(*flags))
        self.assert_ok(result)
        return result, self.show(self.dir / name)

    def assert_right(self, study, largest_that_runs):
        best = study["study"]["best"]
        self.assertLessEqual(best["config"]["train_micro_batch_size_per_gpu"], largest_that_runs)
        possible = max(figure(stage, largest_that_runs) for stage in range(4))
        self.assertGreater(best["metrics"]["FLOPS_per_gpu"], 0.97 * possible)
        self.assertGreaterEqual(study["study"]["gain"]["ratio"], 1)

    def test_a_data_set_of_300_samples_is_a_ceiling_that_is_no_memory(self):
        for searcher in ("guided", "asha", "binary", "random", "grid"):
            with self.subTest(searcher=searcher):
                result, study = self.study("--data-set", 300, "--device-memory", 10**11, name=searcher,
                                           options=["--searcher", searcher])
                self.assertEqual(study["study"]["status"], "completed")
                self.assertLessEqual(study["study"]["best"]["config"]["train_micro_batch_size_per_gpu"], 300)
                failed = [t for t in study["trials"] if t["outcome"] == "failed"]
                self.assertTrue(all(t["config"]["train_micro_batch_size_per_gpu"] > 300 for t in failed))
                self.assertLessEqual(sum(t["attempt"] > 1 for t in failed), 1, "the same end again is no accident")
                if searcher in ("guided", "asha", "binary"):  # the others may not meet the best stage in so few trials
                    self.assert_right(study, 300)
                if len(failed) > 1:
                    self.assertIn("--max-micro-batch", result.stdout + result.stderr)

    def test_a_failure_of_a_moment_costs_no_trial_whichever_it_hits(self):
        for trial in (0, 1, 2, 3, 7, 11):  # each of the profile, the first of the search and two later ones
            with self.subTest(trial=trial):
                _, study = self.study("--fail-once", trial, "--device-memory", 10**9, name=f"out{trial}")
                self.assertEqual({t["outcome"] for t in study["trials"]} - {"completed", "out_of_memory"}, set())
                self.assertEqual([t["attempt"] for t in study["trials"] if t["id"] == trial], [2])
                self.assert_right(study, 42)  # (10^9 - 16 x 25e6 - 90e6) / 12e6, in the script's own model

    def test_optimizer_states_of_8_bits(self):
        _, study = self.study("--state-bytes", 2, "--device-memory", 10**9)
        self.assert_right(study, 55)

    def test_a_script_that_ignores_its_configuration_ends_the_study_without_a_best(self):
        script = self.dir / "train.py"
        script.write_text(SAME_TIME)
        result = self.run_host(["--max-trials", 30, "--metric", "throughput", "--output-dir", "out"],
                               [sys.executable, "-S", "-E", str(script), "--deepspeed_config", "ds_config.json"])
        self.assert_ok(result, 1)
        self.assertIn("no best configuration", result.stderr)
        study = self.show(self.dir / "out")["study"]
        self.assertEqual((study["status"], study["gain"], study["best"]), ("no_best", None, None))
        self.assertIn("does not follow its configuration", study["reason"])
        self.assertNotIn("x your own", (self.dir / "out/summary.txt").read_text())
        self.assertFalse((self.dir / "out/best_ds_config.json").exists())


if __name__ == "__main__":
    unittest.main()
