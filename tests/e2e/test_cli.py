"""What dsat-host prints, and where: standard output, standard error, exit status."""
import json
import os
import signal
import subprocess
import unittest

from support import HOST, HostTest

SHORT = ["--max-trials", 4, "--output-dir", "study"]


class Cli(HostTest):
    def dsat(self, *arguments):
        """The program without a command to tune."""
        return subprocess.run([HOST, *map(str, arguments)], cwd=self.dir, capture_output=True, text=True, timeout=60)

    def waiting_study(self, *options):
        """A study whose profile trial waits to be stopped, as soon as that trial runs."""
        bell = self.dir / "bell"
        os.mkfifo(bell)
        command = ["/bin/sh", "-c", 'echo here > "$0"; exec sleep 600', str(bell),
                   "--deepspeed_config", "ds_config.json"]
        process = self.start_host(self.arguments([*SHORT, *options], command))
        bell.read_text()
        return process

    # What a study prints

    def test_a_tuned_command_ends_with_summary_best_configuration_and_places(self):
        result = self.run_host(SHORT)
        self.assert_ok(result)
        self.assertEqual(result.stderr, "")
        for text in ("trial 0  stage", "model: ", "device memory: ", "activation memory per example: ",
                     "best configuration (trial ", "study/best_ds_config.json", "dsat-host show "):
            self.assertIn(text, result.stdout)
        self.assertIn((self.dir / "study/summary.txt").read_text(), result.stdout)

    def test_quiet_prints_the_result_only(self):
        result = self.run_host([*SHORT, "--quiet"])
        self.assert_ok(result)
        self.assertNotIn("trial 0  stage", result.stdout)
        self.assertIn("best configuration", result.stdout)

    def test_json_leaves_everything_else_to_standard_error(self):
        result = self.run_host([*SHORT, "--json"])
        self.assert_ok(result)
        self.assertEqual(set(json.loads(result.stdout)),
                         {"status", "reason", "best", "gain", "check", "trials", "metric", "dir", "files"})
        self.assertIn("trial 0  stage", result.stderr)

    def test_space_prints_what_would_be_searched_and_runs_nothing(self):
        (self.dir / "space.json").write_text(json.dumps({"workers": {"range": [1, 8], "log": True}, "mine": [1, 2]}))
        options = ["space", "--space", "space.json", "-z", 1, 2, "--max-micro-batch", 64]
        command = self.command("--workers={workers}")
        before = sorted(self.dir.iterdir())
        result = self.dsat(*options, "--", *command)
        self.assert_ok(result)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:4], [
            "zero_optimization.stage: 1 2",
            "    stages 1 2; default; what is partitioned: 1 optimizer states, 2 gradients too, 3 parameters too; read "
            "by every version",
            "train_micro_batch_size_per_gpu: 1 to 64",
            "    stages 1 2; default; samples of a device in one pass; read by every version"])
        self.assertIn("zero_optimization.overlap_comm: true false\n    stages 2; default; reduces gradients",
                      result.stdout)
        self.assertIn("workers: 1 2 4 8\n    stages 1 2; --space space.json; '--workers={workers}' of the command\n",
                      result.stdout)
        self.assertIn("mine: 1 2\n    stages 1 2; --space space.json\n", result.stdout)
        axes = json.loads(self.dsat(*options, "--json", "--", *command).stdout)["axes"]
        self.assertEqual([axis["values"] for axis in axes if axis["key"] == "workers"], [[1, 2, 4, 8]])
        self.assertEqual(sorted(self.dir.iterdir()), before)
        result = self.dsat("space", "--", "python3", "no.py")
        self.assert_ok(result, 2)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_a_failing_study_begins_standard_error_with_the_reason(self):
        result = self.run_host(SHORT, self.command("--misbehave", "typo"))
        self.assert_ok(result, 1)
        lines = result.stderr.splitlines()
        self.assertTrue(lines[0].startswith("dsat-host: no best configuration: "), lines[0])
        self.assertIn("  NameError: name 'modle' is not defined", lines[1:])

    # Signals

    def test_interrupted_it_prints_the_resume_line(self):
        process = self.waiting_study()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        self.assertIn(f"dsat-host resume {(self.dir / 'study').resolve()}", out.splitlines())
        self.assertTrue(err.startswith("dsat-host: interrupted"), err)

    def test_terminated_under_json_standard_output_is_still_one_object(self):
        process = self.waiting_study("--json")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        self.assertEqual(json.loads(out)["status"], "interrupted")
        self.assertIn("dsat-host resume ", err)

    # Standard output that cannot be written

    def test_a_full_standard_output_does_not_cost_the_study(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run(self.arguments(SHORT, self.command()), cwd=self.dir, stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=240)
        self.assert_failed_write(result)
        self.assertTrue((self.dir / "study/best_ds_config.json").exists())

    def assert_failed_write(self, result):
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("standard output", result.stderr)

    def test_a_closed_standard_output_gets_nothing_into_the_journal(self):
        shell = ["/bin/sh", "-c", 'exec "$@" >&-', "sh"]
        result = subprocess.run(shell + self.arguments(SHORT, self.command()), cwd=self.dir, stderr=subprocess.PIPE,
                                text=True, timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.show("study")["trials"]), 4)

    # Sub-commands

    def test_show_is_a_table_for_people(self):
        self.assert_ok(self.run_host(SHORT))
        result = self.dsat("show", "study")
        self.assert_ok(result)
        for text in ("status  completed", "micro batch", "best: trial "):
            self.assertIn(text, result.stdout)

    def test_a_finished_study_prints_its_result_again(self):
        self.assert_ok(self.run_host(SHORT))
        result = self.dsat("resume", "study")
        self.assert_ok(result)
        self.assertIn("best configuration", result.stdout)

    def test_resume_takes_limits_only(self):
        result = self.dsat("resume", "study", "--metric", "latency")
        self.assert_ok(result, 2)
        self.assertIn("--metric cannot change", result.stderr)

    def test_plugins_lists_what_lies_beside_the_program(self):
        listed = self.dsat("plugins", "--json")
        self.assert_ok(listed)
        plugins = json.loads(listed.stdout)["plugins"]
        files = [plugin["file"] for plugin in plugins]
        self.assertEqual(files, sorted(files), "whatever order the folder has")
        names = {plugin["name"] for plugin in plugins}
        self.assertLessEqual({"asha", "binary", "random", "profiler"}, names)
        self.assertIn("--max-rungs", self.dsat("plugins").stdout)

    def test_a_study_without_a_best_is_no_wrong_usage(self):
        command = ["/bin/sh", "-c", "exit 7", "sh", "--deepspeed_config", "ds_config.json"]
        self.assert_ok(self.run_host(SHORT, command), 1)
        result = self.dsat("best", "study")
        self.assert_ok(result, 1)
        self.assertIn("handed back", result.stderr)
        self.assert_ok(self.dsat("best", "nothing"), 2)

    # Plugin options

    def test_a_plugins_options_are_the_programs_own(self):
        self.assert_ok(self.run_host([*SHORT, "--searcher", "asha", "--max-rungs", 2, "--searcher.divisor=3"]))
        self.assertIn("--max-rungs: it belongs to --searcher asha\n",
                      self.run_host(["--searcher", "binary", "--max-rungs", 2]).stderr)
        self.assertIn("--max-rungs: it belongs to --searcher asha\n",
                      self.dsat("resume", "study", "--max-rungs=2").stderr)
        self.assertIn("unknown option --frobnicate", self.run_host(["--frobnicate"]).stderr)
        self.assertIn("--max-rungs N (=5)", self.dsat("--searcher", "asha", "--help").stdout)
        self.assertNotIn("--max-rungs", self.dsat("--help").stdout)

    # The full experiment

    def test_the_full_experiment_failing_is_status_one(self):
        # The command fails when it is no trial.
        command = ["/bin/sh", "-c", '[ -n "$DSAT_TRIAL_ID" ] || exit 9; exec "$@"', "sh", *self.command()]
        result = self.run_host([*SHORT, "--run-full-experiment"], command)
        self.assert_ok(result, 1)
        self.assertIn("ended with status 9", result.stderr)

    def test_a_resume_from_elsewhere_trains_in_the_folder_of_the_study(self):
        command = ["/bin/sh", "-c", '[ -n "$DSAT_TRIAL_ID" ] || exec pwd > trained_in; exec "$@"', "sh",
                   *self.command()]
        self.assert_ok(self.run_host(SHORT, command))
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        done = subprocess.run([HOST, "resume", self.dir / "study", "--run-full-experiment"], cwd=elsewhere,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.dir / "trained_in").read_text(), f"{self.dir.resolve()}\n")

    def test_the_full_experiments_output_goes_to_standard_error_under_json(self):
        command = ["/bin/sh", "-c", '[ -n "$DSAT_TRIAL_ID" ] || echo training; exec "$@"', "sh", *self.command()]
        result = self.run_host([*SHORT, "--run-full-experiment", "--json"], command)
        self.assert_ok(result)
        self.assertEqual(json.loads(result.stdout)["status"], "completed")
        self.assertIn("training", result.stderr.splitlines())


if __name__ == "__main__":
    unittest.main()
