"""Trials that go wrong: each gets its outcome and its reason, and none takes the study with it unless it must."""
import json
import os
import re
import subprocess
import sys
import unittest

from support import FIXTURES, HOST, SCRIPT, HostTest, processes_with
from waiting import wait_until


# Stands for torchrun and accelerate: runs the script once, and prints around its failure what they print.
LAUNCHER = """#!%s -SE
import os, subprocess, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "accelerate":
    assert arguments.pop(0) == "launch"
while arguments[0].startswith("-"):
    if "=" not in arguments.pop(0):
        arguments.pop(0)
status = subprocess.run([sys.executable, "-S", "-E"] + arguments, env=dict(os.environ, RANK="0")).returncode
if status == 0:
    sys.exit(0)
print('Traceback (most recent call last):\\n  File "/usr/bin/' + name + '", line 8, in <module>\\n    sys.exit(main())',
      file=sys.stderr)
if name == "accelerate":
    print("subprocess.CalledProcessError:", subprocess.CalledProcessError(status, arguments), file=sys.stderr)
else:
    print("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \\n" + "=" * 60 + "\\ntrain.py FAILED\\n"
          + "-" * 60 + "\\nFailures:\\n  <NO_OTHER_FAILURES>\\nRoot Cause (first observed failure):\\n[0]:\\n"
          "  rank      : 0 (local_rank: 0)\\n  exitcode  : " + str(status) + " (pid: 7)\\n" + "=" * 60, file=sys.stderr)
sys.exit(1)
""" % sys.executable


class TrialFailures(HostTest):
    def run_misbehaving(self, *how, options=()):
        flags = [word for h in how for word in ("--misbehave", h)]
        result = self.run_host(["--output-dir", "out", "--max-trials", 8, *options], self.command(*flags))
        return result, self.show(self.dir / "out")

    def test_a_typo_ends_the_study_after_the_profile_trial_with_the_scripts_last_lines(self):
        result, study = self.run_misbehaving("typo")
        self.assert_ok(result, 1)
        self.assertEqual(len(study["trials"]), 1)
        self.assertIn("NameError: name 'modle' is not defined", result.stderr)
        self.assertIn("modle.train()", result.stderr)
        again = subprocess.run([HOST, "resume", "out"], cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assert_ok(again, 1)
        self.assertIn("start a new one", again.stdout)
        self.assertNotIn("--max-trials", again.stdout)

    def test_under_every_launcher_the_reason_is_the_scripts(self):
        tools = self.dir / "bin"
        tools.mkdir()
        for name in ("torchrun", "accelerate"):
            (tools / name).write_text(LAUNCHER)
            (tools / name).chmod(0o755)
        environment = {**os.environ, "PATH": os.pathsep.join([str(tools), str(FIXTURES / "bin"), os.environ["PATH"]])}
        launchers = {"python": SCRIPT[:-1], "torchrun": ["torchrun", "--nproc_per_node=1"],
                     "accelerate": ["accelerate", "launch", "--num_processes=1"], "deepspeed": ["deepspeed"]}
        causes = {"typo": ["NameError: name 'modle' is not defined"], "killed": ["killed by signal 9 (Killed)"],
                  "no_pinned_memory": ["host (pinned) memory", "pin_memory: false"]}
        for launcher, begin in launchers.items():
            for how, words in causes.items():
                with self.subTest(launcher=launcher, how=how):
                    out = f"{launcher}-{how}"
                    command = [*begin, SCRIPT[-1], "--deepspeed_config", "ds_config.json", "--misbehave", how]
                    result = subprocess.run(
                        self.arguments(["--output-dir", out, "--max-trials", 4, "--slots", 1, "--slots-per-trial", 1],
                                       command),
                        cwd=self.dir, env=environment, capture_output=True, text=True, timeout=120)
                    self.assert_ok(result, 1)
                    reason = self.show(self.dir / out)["trials"][0]["reason"]
                    for word in words:
                        self.assertIn(word, reason)
                    for word in ("====", "ChildFailedError", "CalledProcessError", "sys.exit(main())"):
                        self.assertNotIn(word, reason)

    def test_a_trial_that_fails_runs_again_as_often_as_max_restarts_says(self):
        for restarts, outcome, attempt in ((0, "failed", 1), (1, "completed", 2)):
            with self.subTest(restarts):
                out = "out%d" % restarts
                self.run_host(["--output-dir", out, "--max-trials", 3, "--max-restarts", restarts],
                              self.command("--fail-once", 1))
                trial = self.show(self.dir / out)["trials"][1]
                self.assertEqual((trial["outcome"], trial["attempt"]), (outcome, attempt))

    def with_devices(self, *numbers):
        """The environment of a machine with these devices."""
        tools = self.dir / "bin"
        tools.mkdir(exist_ok=True)
        lines = " ".join(map(str, numbers))
        (tools / "nvidia-smi").write_text(f"#!/bin/sh\nfor i in {lines}; do echo $i, GPU-$i, 81559, 3; done\n")
        (tools / "nvidia-smi").chmod(0o755)
        return {**os.environ, "PATH": "%s:%s" % (tools, os.environ["PATH"])}

    def test_a_second_study_on_the_same_devices_is_warned_of_the_first(self):
        first_device = 1000 + os.getpid() % 1000 * 4  # no other test's
        environment = self.with_devices(*range(first_device, first_device + 4))
        first = self.start_host(self.arguments(["--output-dir", "first", "--slots-per-trial", 1],
                                               self.command("--misbehave", "hang")), env=environment)
        wait_until(lambda: list(self.dir.glob("first/trials/0/cmd.txt")), "the first study runs")
        used = f"{first_device + 2},{first_device + 3}"
        options = ["--output-dir", "second", "--max-trials", 2, "--slots-per-trial", 1]
        arguments = self.arguments(options, self.command())
        second = subprocess.run(arguments, cwd=self.dir, env={**environment, "CUDA_VISIBLE_DEVICES": used},
                                capture_output=True, text=True, timeout=240)
        self.assertIn(f"on devices {used.replace(',', ', ')} too (process {first.pid})", second.stdout)

    def test_a_broken_device_gets_no_more_trials(self):
        environment = self.with_devices(0, 1, 2, 3)
        (self.dir / "train.py").write_text(
            "import os, runpy, sys\n"
            "if os.environ['CUDA_VISIBLE_DEVICES'] == '2': sys.exit('RuntimeError: uncorrectable ECC error')\n"
            "sys.argv.pop(0)\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')\n")
        command = self.command("--device-memory", 10**12)
        command.insert(len(SCRIPT) - 1, "train.py")
        result = subprocess.run(
            self.arguments(["--output-dir", "out", "--max-trials", 24, "--searcher", "random",
                            "--slots-per-trial", 1], command),
            cwd=self.dir, env=environment, capture_output=True, text=True, timeout=240)
        self.assert_ok(result)
        trials = self.show(self.dir / "out")["trials"]
        again = {trial["id"] for trial in trials if trial["attempt"] == 2}
        found = re.search(r"slot 2 gets no more trials: trials (\d+), (\d+), (\d+) failed there and completed",
                          result.stdout)
        self.assertIsNotNone(found, result.stdout)
        self.assertLessEqual({int(trial) for trial in found.groups()}, again)
        self.assertIn("uncorrectable ECC error", result.stdout)
        self.assertEqual([trial["id"] for trial in trials if trial["outcome"] == "failed"], [])
        self.assertEqual([trial["id"] for trial in trials if trial["slots"] == ["2"]], [])

    def test_a_script_that_ends_before_the_window_says_so(self):
        result, study = self.run_misbehaving("early_exit")
        self.assert_ok(result, 1)
        trial = study["trials"][1]  # the first that was to measure
        self.assertEqual((trial["id"], trial["outcome"]), (1, "failed"))
        self.assertIn("before", trial["reason"])
        self.assertIn("--end-profile-step", trial["reason"])

    def failed_measured_trial(self, how, *words):
        result, study = self.run_misbehaving(how)
        self.assert_ok(result, 1)
        trial = next(t for t in study["trials"] if t["outcome"] != "completed")
        self.assertEqual(trial["outcome"], "failed")
        for word in words:
            self.assertIn(word, trial["reason"])

    def test_a_torn_result(self):
        self.failed_measured_trial("torn", "ends too early", "torn")

    def test_a_result_that_is_no_json(self):
        self.failed_measured_trial("not_json", "not JSON")

    def test_an_empty_result(self):
        self.failed_measured_trial("empty", "empty")

    def test_a_result_with_nan(self):
        self.failed_measured_trial("nan", "NaN")

    def test_a_negative_latency(self):
        self.failed_measured_trial("negative", "latency", "negative")

    def test_a_trial_that_hangs_is_timed_out_and_leaves_nothing(self):
        result, study = self.run_misbehaving("hang", "leave_child", options=["--trial-timeout", "1s"])
        self.assert_ok(result, 1)
        self.assertEqual(study["trials"][0]["outcome"], "timed_out")
        self.assertEqual(processes_with(str(self.dir / "out")), [])

    def test_a_trial_without_progress_is_timed_out(self):
        result, study = self.run_misbehaving("hang", options=["--no-progress-timeout", "1s"])
        self.assert_ok(result, 1)
        self.assertEqual(study["trials"][0]["outcome"], "timed_out")
        self.assertIn("progress", study["trials"][0]["reason"])

    def test_a_good_result_counts_whatever_the_exit_status(self):
        result, study = self.run_misbehaving("fail_after_result")
        self.assert_ok(result)
        self.assertEqual({t["outcome"] for t in study["trials"]} - {"out_of_memory"}, {"completed"})
        self.assertIn("exit", result.stderr + result.stdout)

    def test_children_that_are_left_behind_are_ended_with_their_trial(self):
        result, _ = self.run_misbehaving("leave_child")
        self.assert_ok(result)
        self.assertEqual(processes_with(str(self.dir / "out")), [])

    def test_a_port_that_is_taken_costs_no_trial_and_is_not_shown(self):
        result, study = self.run_misbehaving("port_taken_once")
        self.assert_ok(result)
        self.assertEqual(len(study["trials"]), 8)
        self.assertEqual({t["outcome"] for t in study["trials"]} - {"out_of_memory"}, {"completed"})
        self.assertEqual(max(t["attempt"] for t in study["trials"]), 2)

    def test_out_of_memory_everywhere_ends_without_a_best_and_says_why(self):
        result = self.run_host(["--output-dir", "out", "--max-trials", 8], self.command("--device-memory", 1000000))
        self.assert_ok(result, 1)
        self.assertIn("nothing fits: stages ", result.stderr)
        self.assertIn("offload", result.stderr)
        self.assertIn("CUDA out of memory", result.stderr)

    def test_a_script_that_goes_on_after_a_shortage_is_not_handed_back(self):
        result = self.run_host(["--output-dir", "out", "--max-trials", 16, "--searcher", "random"],
                               self.command("--misbehave", "recover_oom"))
        self.assert_ok(result)
        study = self.show(self.dir / "out")
        warned = {int(number) for number in re.findall(r"trial (\d+): memory ran out, the script went on",
                                                       result.stdout + result.stderr)}
        fastest = max((t for t in study["trials"] if t["metrics"] and "throughput" in t["metrics"]),
                      key=lambda trial: trial["metrics"]["throughput"])
        self.assertIn(fastest["id"], warned)
        self.assertNotIn(study["best"]["trial"], warned)

    def test_pinned_memory_that_runs_out_is_no_matter_of_the_batch(self):
        result, study = self.run_misbehaving("no_pinned_memory")
        self.assert_ok(result, 1)
        self.assertEqual({t["outcome"] for t in study["trials"]}, {"failed"})
        self.assertIn("pin_memory: false", result.stderr)
        self.assertIn("CUDA error: out of memory", result.stderr)

    def test_milliseconds_and_old_names_are_read(self):
        result, study = self.run_misbehaving("milliseconds", "old_names")
        self.assert_ok(result)
        plain = self.run_host(["--output-dir", "plain", "--max-trials", 8])
        self.assert_ok(plain)
        plain = self.show(self.dir / "plain")["trials"]
        self.assertEqual([t["outcome"] for t in study["trials"]], [t["outcome"] for t in plain])
        latencies = [[t["metrics"]["latency"] for t in trials if t["kind"] != "profile" and t["outcome"] == "completed"]
                     for trials in (study["trials"], plain)]
        self.assertGreater(len(latencies[1]), 3)
        for got, wanted in zip(*latencies):
            self.assertAlmostEqual(got, wanted, delta=1e-6 * wanted)

    def test_the_time_budget_ends_the_study_with_the_best_so_far(self):
        result = self.run_host(["--output-dir", "out", "--max-trials", 100000, "--time-budget", "4s", "--json",
                                "--searcher", "random"])
        self.assert_ok(result)
        study = json.loads(result.stdout)
        self.assertEqual((study["status"], study["reason"]), ("completed", "the time budget is spent"))
        self.assertIsNotNone(study["best"])


if __name__ == "__main__":
    unittest.main()
