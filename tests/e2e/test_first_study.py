"""The first study of a new user: what goes wrong in it is named at once, once, and with what to do."""
import pathlib
import re
import sys
import unittest

from support import HostTest

# Trains nothing: its memory and its speed are made up.
TRIAL = """
import json, sys
config = json.load(open(sys.argv[-1]))
tuning, samples = config["autotuning"], config["train_micro_batch_size_per_gpu"]
if samples > {most_samples}:
    sys.exit("RuntimeError: CUDA out of memory.")
if tuning.get("model_info", {{}}).get("profile"):
    json.dump({{"num_params": 1000000, "rank": 0}}, open(tuning["model_info_path"], "w"))
else:
    json.dump({{"throughput": 10 + samples, "latency": {latency_us}, "FLOPS_per_gpu": 1e9, "peak_memory": {peak},
               "latency_spread": 0.05, "latency_steps": 3, "rank": 0}}, open(tuning["metric_path"], "w"))
"""


def trial(most_samples=10**9, latency_us="config['train_batch_size'] * 1e6 / (10 + samples)", peak=1000):
    return TRIAL.format(most_samples=most_samples, latency_us=latency_us, peak=peak)


class FirstStudy(HostTest):
    def study(self, text, *options, searcher="random", out="out"):
        """The whole output of a study of this script."""
        (self.dir / "train.py").write_text(text)
        command = [sys.executable, "-S", "-E", "train.py", "--deepspeed_config", "ds_config.json"]
        self.result = self.run_host(["--searcher", searcher, "--output-dir", out, *options], command)
        return self.result.stdout + self.result.stderr

    def test_the_failure_of_a_script_without_our_package_names_its_folder(self):
        output = self.study("import dsat\n", "--max-trials", 3)
        self.assertIn("No module named 'dsat' (add PYTHONPATH=", output)
        folder = re.search(r"PYTHONPATH=(\S+)\)", output).group(1)
        self.assertTrue((pathlib.Path(folder) / "dsat/__init__.py").is_file(), folder)

    def test_the_failure_of_a_script_that_reports_nothing_names_the_timer_too(self):
        output = self.study("pass\n", "--max-trials", 3)
        self.assertIn("without writing model_info.json", output)
        self.assertIn("dsat.StepTimer (docs/python.md)", output)

    def test_the_spread_that_a_script_reports_is_read(self):
        self.study(trial(), "--max-trials", 3)
        metrics = self.show(self.dir / "out")["trials"][-1]["metrics"]
        self.assertEqual((metrics["latency_spread"], metrics["latency_steps"]), (0.05, 3))

    def test_figures_that_do_not_agree_are_named_once_a_study(self):
        output = self.study(trial(latency_us=1000), "--max-trials", 6, "--device-memory", "1GB")
        self.assertEqual(output.count("the script measures something else"), 1, output)
        self.assertIn("give --arg-mapping KEY=FLAG", output)

    def test_a_device_memory_that_is_too_small_is_questioned_once(self):
        notice = "trials ran that need more than --device-memory "
        large = trial(peak=2e9)
        self.assertEqual(self.study(large, "--max-trials", 6, "--device-memory", "1GB").count(notice), 1)
        self.assertNotIn(notice, self.study(large, "--max-trials", 6, "--device-memory", "4GB", out="more"))
        self.assert_ok(self.result)

    def test_states_of_a_model_above_the_device_memory_are_questioned_where_no_peak_is_known(self):
        output = self.study(trial(peak=0), "--max-trials", 4, "--device-memory", "8MB", "-z", 1)
        self.assertEqual(output.count("trials ran that need more than --device-memory 8"), 1, output)

    def test_a_script_that_is_not_there_is_refused_at_once(self):
        for options in ([], ["--trial-cwd", "copy"]):
            result = self.run_host(["--searcher", "random", *options],
                                   [sys.executable, "-u", "trainn.py", "--deepspeed_config", "ds_config.json"])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("no script 'trainn.py' in ", result.stderr)
            self.assertEqual([path.name for path in self.dir.iterdir()], ["ds_config.json"])

    def test_what_names_no_script_is_not_looked_for(self):
        (self.dir / "scripts").mkdir()
        (self.dir / "scripts/train.py").write_text(trial())
        for words in (["scripts/train.py"], ["-c", "import runpy; runpy.run_path('scripts/train.py')", "no.py"]):
            result = self.run_host(["--searcher", "random", "--max-trials", 3, "--quiet"],
                                   [sys.executable, "-S", *words, "--deepspeed_config", "ds_config.json"])
            self.assert_ok(result)

    def test_a_study_that_ends_before_its_search_says_so(self):
        output = self.study(trial(), "--max-trials", 1)
        self.assertIn("no trial gave FLOPS_per_gpu (1 completed)", output)
        self.assertIn("raise --max-trials", output)

    def test_where_nothing_was_measured_no_table_stands_above_the_reason(self):
        self.assertNotIn("micro batch  accumulation", self.study("import nowhere\n"))
        self.assertIn("No module named 'nowhere'", self.result.stderr)
        self.assertIn("micro batch  accumulation", self.study(trial(), "--max-trials", 3, out="good"))

    def test_grid_loses_few_trials_to_a_ceiling_that_nobody_knows(self):
        output = self.study(trial(most_samples=96), "--metric", "throughput", "--max-trials", 30, searcher="grid")
        ends = [end["outcome"] for end in self.show(self.dir / "out")["trials"]]
        self.assertLessEqual(ends.count("out_of_memory"), 6, output)


if __name__ == "__main__":
    unittest.main()
