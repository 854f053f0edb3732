"""dsat-host as a shell, a terminal and a scheduler run it: its signals, its streams, its training in the end."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from support import HOST, HostTest, PROJECT, processes_with
from test_experiment_form import ExperimentTest, INCLUDE
from waiting import wait_until

SHORT = ["--searcher", "random", "--max-trials", 6, "--output-dir", "study"]
# A command that is the training where it is no trial: it says that it runs, and when it is to end.
TRAINING = """
import os, signal, sys, time
if "DSAT_TRIAL_ID" in os.environ:
    os.execv(sys.argv[1], sys.argv[1:])
def saved(*_):
    open("saved", "w").close()
    sys.exit(5)
signal.signal(signal.SIGTERM, saved)
open("training", "w").close()
if os.environ.get("STAYS"):
    time.sleep(600)
"""

# The same below a launcher, which starts a rank, which has a worker. Each of them notes that it got the signal.
LAUNCHED = """
import os, signal, subprocess, sys
if "DSAT_TRIAL_ID" in os.environ:
    os.execv(sys.argv[1], sys.argv[1:])
role = os.environ.get("ROLE", "launcher")
reading, writing = os.pipe()
def note(*_):
    open(role + " got it", "w").close()
    os.write(writing, b"x")
signal.signal(signal.SIGTERM, note)
below = {"launcher": dict(ROLE="rank", RANK="0", LOCAL_RANK="0"), "rank": dict(ROLE="worker")}.get(role)
if below:
    child = subprocess.Popen([sys.executable, "-S", "-E", *sys.argv], env={**os.environ, **below},
                             stdin=subprocess.PIPE)
if role == "worker":
    open("training", "w").close()
    sys.stdin.read()
elif role == "rank":
    os.read(reading, 1)
    child.communicate()
else:
    sys.exit(child.wait())
"""


def pending(pid):
    """The signals that wait for the process, which is stopped."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("ShdPnd:"))
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def end_all_with(text):
    for pid in processes_with(text):
        os.kill(pid, signal.SIGKILL)


class Training(HostTest):
    def training(self, script=TRAINING):
        (self.dir / "train.py").write_text(script)
        return [sys.executable, "-S", "-E", "train.py", *self.command()]

    def dsat(self, *arguments):
        return subprocess.run([HOST, *map(str, arguments)], cwd=self.dir, capture_output=True, text=True, timeout=120)

    def test_a_scheduler_that_ends_dsat_host_ends_its_training(self):
        process = self.start_host(self.arguments([*SHORT, "--run-full-experiment"], self.training()),
                                  env={**os.environ, "STAYS": str(self.dir)})
        self.addCleanup(end_all_with, f"STAYS={self.dir}")
        wait_until((self.dir / "training").exists, "the training")
        process.terminate()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("ended with status 143", err)
        self.assertTrue((self.dir / "saved").exists())
        self.assertEqual(processes_with(str(self.dir / "study")), [])

    def test_the_order_to_stop_goes_to_the_ranks_alone(self):
        process = self.start_host(self.arguments([*SHORT, "--run-full-experiment"], self.training(LAUNCHED)))
        self.addCleanup(end_all_with, str(self.dir))
        wait_until((self.dir / "training").exists, "the rank's worker")
        process.terminate()
        _, err = process.communicate(timeout=60)
        self.assertIn("ended with status 143", err)  # the shell's: it starts no further command
        self.assertEqual([path.name for path in self.dir.glob("* got it")], ["rank got it"])

    def test_a_parent_that_ignores_the_ends_of_children_costs_no_trial(self):
        done = subprocess.run(self.arguments([*SHORT, "--run-full-experiment"], self.training()), cwd=self.dir,
                              capture_output=True, text=True, timeout=120,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("unknown way", done.stdout)
        self.assertTrue((self.dir / "training").exists())

    def test_a_resumed_search_trains_where_it_is_to(self):
        process = self.start_host(self.arguments([*SHORT, "--run-full-experiment"],
                                                 [*self.training(), "--misbehave", "hang"]))
        wait_until((self.dir / "study/trials/0/stdout.log").exists, "the first trial")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        self.assertIn(f"dsat-host resume {(self.dir / 'study').resolve()} --run-full-experiment", out.splitlines())

    def test_a_study_that_has_ended_can_still_be_trained(self):
        self.assert_ok(self.run_host(SHORT, self.training()))
        self.assert_ok(self.dsat("resume", "study"))
        self.assertFalse((self.dir / "training").exists())
        self.assert_ok(self.dsat("resume", "study", "--max-trials", 8, "--run-full-experiment"))
        self.assertTrue((self.dir / "training").exists())

    def test_a_simulation_is_not_trained(self):
        simulation = ["--runner", "sim", "--sim", PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"]
        self.assert_ok(self.run_host([*simulation, *SHORT], []))
        result = self.dsat("resume", "study", "--run-full-experiment")
        self.assert_ok(result, 2)
        self.assertIn("--run-full-experiment: a simulation", result.stderr)


class Experiment(ExperimentTest):
    def test_a_full_standard_output_costs_neither_search_nor_training(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([HOST, "random", "deepspeed.yaml", ".", *map(str, INCLUDE), "-mt", "3",
                                     "--output-dir", "out", "--run-full-experiment"], cwd=self.dir,
                                    env=self.environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240)
        self.assertNotIn("restart ", result.stderr)
        self.assertEqual(result.stderr.count("cannot write to standard output"), 1, result.stderr)
        # It was begun. Its launcher minds that it cannot write.
        self.assertIn("ended with status", result.stderr)
        self.assertEqual(result.returncode, 1, result.stderr)


class Streams(HostTest):
    def hanging_study(self):
        """Its trial 3 does not end."""
        process = self.start_host(self.arguments(SHORT, self.command("--misbehave", "ignore_term_later")))
        log = self.dir / "study/trials/3/stdout.log"
        wait_until(lambda: log.exists() and "ready" in log.read_text(), "trial 3")
        return process

    def test_following_ends_with_its_reader(self):
        self.hanging_study()
        reader, writer = os.pipe()
        os.close(reader)
        try:
            result = subprocess.run([HOST, "show", "study", "--follow"], cwd=self.dir, stdout=writer,
                                    stderr=subprocess.PIPE, text=True, timeout=60)
        finally:
            os.close(writer)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_trial_of_a_killed_host_is_running_in_mlflow(self):
        process = self.hanging_study()
        process.kill()
        process.communicate()
        result = subprocess.run([HOST, "export", "study", "--format", "mlflow", "-o", "mlruns"],
                                cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assert_ok(result)
        states = [line for file in (self.dir / "mlruns").rglob("meta.yaml") for line in file.read_text().splitlines()
                  if line.startswith("status: ")]
        self.assertIn("status: 5", states)
        self.assertNotIn("status: 1", states)

    def test_a_server_under_nohup_outlives_its_terminal(self):
        self.assert_ok(self.run_host(SHORT))
        process = self.start_host([HOST, "serve", "study"],
                                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertIn("http://", process.stdout.readline())
        self.assertIn("Ctrl-C ends", process.stdout.readline())
        # An ignored signal is dropped when it comes, one that somebody waits for is kept all the same.
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(pending(process.pid), {signal.SIGTERM})
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
