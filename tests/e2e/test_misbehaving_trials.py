"""Trials that misbehave in every way:
each gets its documented outcome, and the study goes on and leaves nothing behind.

One study runs them side by side. By default it takes a sample of the modes of misbehaving_trial.py; all of them:
DSAT_ALL_MODES=1 python3 -m unittest test_misbehaving_trials (with DSAT_BUILD_DIR and PYTHONPATH as for every test).
"""
import collections
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from support import FIXTURES, HOST, HostTest, processes_with

SCRIPT = FIXTURES / "misbehaving_trial.py"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FIXTURES / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODES = load("misbehaving_trial").MODES
ALL = bool(os.environ.get("DSAT_ALL_MODES"))
TRIAL_TIMEOUT = "30s" if ALL else "10s"  # thousands of files take their time on a busy machine
STUCK = ["waits_in_the_kernel", "leaves_a_child_that_waits_in_the_kernel"]  # each takes a slot with it
ALWAYS = ["sparse_result", "input_output_error", "keys_in_a_small_file", "huge_flops", "pipe_result",
          "kernel_log_result", "error_log_of_a_gigabyte", "folder_is_removed", "kills_its_launcher",
          "stops_its_launcher", "kills_its_launcher_after_its_result", "hangs_and_ignores_every_signal",
          "leaves_a_child_in_a_session_of_its_own", "c1_controls_in_the_last_line"]


class MisbehavingTrials(HostTest):
    def setUp(self):
        super().setUp()
        self.claims = self.dir / "claims"
        self.claims.mkdir()
        self.before = set(os.listdir("/dev/shm"))
        # A mode makes folders deeper than Python recurses.
        self.addCleanup(subprocess.run, ["rm", "-rf", str(self.dir)])

    def script(self, modes):
        return [sys.executable, "-S", "-E", str(SCRIPT), "--deepspeed_config", "ds_config.json",
                "--modes", ",".join(modes), "--claims", str(self.claims)]

    def left(self):
        """Processes of the study; those that were killed get a moment to go."""
        deadline = time.monotonic() + 10
        while processes_with(str(self.dir)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return processes_with(str(self.dir))

    def run_modes(self, modes, slots=8, environment=None):
        sizes = [1000000 + 4321 * i for i in range(1000)]  # more configurations than trials, each with room to spare
        (self.dir / "space.json").write_text(json.dumps({"zero_optimization.reduce_bucket_size": sizes}))
        options = ["--output-dir", "out", "--max-trials", 2 * len(modes) + 20, "--slots", slots, "--slots-per-trial", 1,
                   "--searcher", "random", "--trials-per-random-config", 1, "--space", "space.json",
                   "--trial-timeout", TRIAL_TIMEOUT, "--profile-trials", 1, "--no-baseline", "--finals", 0]
        with unittest.mock.patch.dict(os.environ, environment or {}):
            self.result = self.run_host(options, self.script(modes), timeout=540)
        self.study = self.show(self.dir / "out")
        return self.result

    def trial_of(self, mode, study=None):
        number = (self.claims / mode).read_text()
        return next(trial for trial in (study or self.study)["trials"] if trial["id"] == int(number))

    def check(self, modes):
        self.assertEqual(self.result.returncode, 0, self.result.stderr[-3000:])
        warnings = collections.defaultdict(str)
        for line in (self.result.stdout + self.result.stderr).splitlines():
            if line.startswith("warning: trial "):
                warnings[line.split()[2].rstrip(":")] += line + "\n"
        for mode in modes:
            with self.subTest(mode):
                self.assertTrue((self.claims / mode).exists(), "it was not run")
                outcome, words, _ = MODES[mode]
                trial = self.trial_of(mode)
                text = trial["reason"] + "\n" + warnings[str(trial["id"])]
                self.assertEqual(trial["outcome"], outcome, text)
                for word in words:
                    self.assertIn(word, text)
        self.assertNotRegex(self.result.stdout + self.result.stderr,
                            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
        self.assertLess(max(map(len, (self.result.stdout + self.result.stderr).splitlines())), 6000)

    def check_nothing_is_left(self):
        left = self.left()
        self.assertEqual(left, [], [pathlib.Path("/proc/%d/stat" % pid).read_text() for pid in left])
        for trial in self.study["trials"]:  # its port can be bound again
            command = self.dir / "out/trials" / str(trial["id"]) / "cmd.txt"
            if command.is_file() and "MASTER_PORT=" in command.read_text(errors="replace"):
                port = int(command.read_text().split("MASTER_PORT=")[1].split()[0])
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", port))
        # Real training beside this test has shared memory of its own.
        new = {name for name in os.listdir("/dev/shm") if not name.startswith("deepspeed_")} - self.before
        self.assertEqual(new, set())

    def test_each_gets_its_outcome_and_leaves_nothing(self):
        modes = [mode for mode in MODES if mode not in STUCK]
        if not ALL:
            modes = [mode for i, mode in enumerate(modes) if mode in ALWAYS or i % 5 == 0]
        self.run_modes(modes)
        self.check(modes)
        self.check_nothing_is_left()
        claimed = {int(file.read_text()) for file in self.claims.iterdir()}
        others = [trial for trial in self.study["trials"]
                  if trial["id"] not in claimed and trial["kind"] != "duplicate" and trial["attempt"] > 0]
        self.assertEqual({trial["outcome"] for trial in others}, {"completed"})
        self.say(modes)

    def say(self, modes):
        outcomes = collections.Counter(self.trial_of(mode)["outcome"] for mode in modes)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        print(f"{len(modes)} of {len(MODES)} modes with their outcomes ({counts}); "
              "processes, ports and shared memory held afterwards: 0", file=sys.stderr)

    def test_one_that_the_kernel_holds_is_abandoned_and_the_study_goes_on(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="dsat-stuck-"))
        try:
            stuck = load("stuck_filesystem").StuckFilesystem(folder)
        except OSError as error:
            folder.rmdir()
            self.skipTest("no FUSE here: %s" % error)
        try:
            # The others are kept busy until both have ended: some of them start after that.
            gate, study_is_over = self.dir / "gate", threading.Event()
            opener = threading.Thread(target=self.open_when_ended, args=(gate, STUCK, study_is_over))
            opener.start()
            try:
                self.run_modes(STUCK, slots=4, environment={"STUCK_FILE": str(folder / "file"), "DSAT_GATE": str(gate)})
            finally:
                study_is_over.set()
                opener.join()
            self.check(STUCK)
            self.check_slots_are_abandoned(STUCK)
        finally:
            stuck.abort()
        self.check_nothing_is_left()
        self.say(STUCK)
        folder.rmdir()

    def open_when_ended(self, gate, modes, study_is_over):
        while not gate.exists() and not study_is_over.wait(0.2):
            claims = [self.claims / mode for mode in modes]
            if all(claim.exists() and claim.read_text() for claim in claims):
                study = self.show(self.dir / "out")
                if all(self.trial_of(mode, study)["ended_at"] for mode in modes):
                    gate.touch()

    def check_slots_are_abandoned(self, modes):
        for stuck in map(self.trial_of, modes):
            later = [trial for trial in self.study["trials"]
                     if trial["slots"] and trial["started_at"] > stuck["ended_at"]]
            self.assertTrue(later)
            for trial in later:
                self.assertFalse(set(trial["slots"]) & set(stuck["slots"]), (trial["id"], stuck["id"]))

    def test_a_second_interrupt_ends_the_program_whatever_the_kernel_holds(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="dsat-stuck-"))
        try:
            stuck = load("stuck_filesystem").StuckFilesystem(folder)
        except OSError as error:
            folder.rmdir()
            self.skipTest("no FUSE here: %s" % error)
        try:
            os.environ["STUCK_FILE"] = str(folder / "file")
            host = self.start_host([HOST, "--output-dir", "out", "--searcher", "random", "--profile-trials", "1",
                                    "--no-baseline", "--", *self.script(STUCK[:1])])
            while not (self.claims / STUCK[0]).exists() and host.poll() is None:
                time.sleep(0.05)
            host.send_signal(signal.SIGINT)
            time.sleep(0.5)  # two signals of one number that meet are one
            host.send_signal(signal.SIGINT)
            host.wait(timeout=30)
            self.assertEqual(host.returncode, 3)
        finally:
            stuck.abort()
        self.assertEqual(self.left(), [])
        folder.rmdir()

    def test_without_a_slot_left_the_study_says_so(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="dsat-stuck-"))
        try:
            stuck = load("stuck_filesystem").StuckFilesystem(folder)
        except OSError as error:
            folder.rmdir()
            self.skipTest("no FUSE here: %s" % error)
        try:
            self.run_modes(STUCK[:1], slots=1, environment={"STUCK_FILE": str(folder / "file")})
            self.assertEqual(self.result.returncode, 4, self.result.stderr)
            self.assertIn("no slots are left", self.result.stderr)
        finally:
            stuck.abort()
        folder.rmdir()


if __name__ == "__main__":
    unittest.main()
