"""Tuning from Python (`dsat.tune`), and the stream of events below it (--events)."""
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import unittest
from unittest import mock

from support import HOST, PROJECT, HostTest

sys.path.insert(0, str(PROJECT / "sdk/python"))
import dsat  # noqa: E402
from dsat._live import LiveLine  # noqa: E402

OPTIONS = {"searcher": "asha", "max_trials": 8, "device_memory": "1GB"}


class Tune(HostTest):
    def tune(self, command=None, **options):
        how = {"host": HOST, "cwd": self.dir, "show": False, "output_dir": "run", **OPTIONS, **options}
        return dsat.tune(self.command() if command is None else command, **how)

    def test_a_study_is_returned(self):
        events = []
        study = self.tune(on_event=events.append)
        self.assertEqual((study.status, study.dir), ("completed", self.dir / "run"))
        self.assertEqual(study.best_config, json.loads((study.dir / "best_ds_config.json").read_text()))
        self.assertEqual(study.trials, self.show(study.dir)["trials"])
        self.assertGreaterEqual(study.gain["ratio"], 1)
        self.assertIn("<html", study.report().read_text())
        kinds = [event["event"] for event in events]
        self.assertEqual((kinds[0], kinds[-1]), ("start", "result"))
        self.assertEqual((events[0]["version"], events[0]["max_trials"]), (1, 8))
        ended = [event["trial"]["id"] for event in events if event["event"] == "ended"]
        self.assertEqual(sorted(ended), [t["id"] for t in study.trials if t["attempt"] > 0])
        self.assertTrue(events[-1]["result"]["files"]["report"])

    def test_a_study_goes_on_and_is_found_again(self):
        study = self.tune()
        more = study.resume(max_trials=10, show=False)
        self.assertTrue(all(trial["ended_at"] for trial in more.trials))
        self.assertEqual(len(more.trials), 10)
        self.assertEqual(dsat.Study(self.dir / "run", host=HOST).best, more.best)
        with self.assertRaisesRegex(dsat.Error, "dsat.db"):
            dsat.Study(self.dir, host=HOST).trials

    def test_what_cannot_start_says_why(self):
        cases = [({"max_trials": "many"}, "--max-trials"), ({"runer": "sim"}, "did you mean --runner"),
                 ({"json": True}, "json is not taken"), ({"command": "python3 train.py"}, "list of its words"),
                 ({"command": []}, "COMMAND"), ({"cwd": self.dir / "nowhere"}, "nowhere"),
                 ({"host": "/nowhere/dsat-host"}, "/nowhere/dsat-host")]
        for options, why in cases:
            with self.subTest(options=options), self.assertRaisesRegex(dsat.Error, why) as raised:
                self.tune(**options)
            self.assertNotIn("\n", str(raised.exception))
        self.assertFalse((self.dir / "run").exists())

    def test_a_program_without_the_right_to_run_is_named(self):
        (self.dir / "dsat-host").touch(mode=0o644)
        with mock.patch("dsat._host._candidates", lambda: [self.dir / "dsat-host"]), \
                mock.patch.dict(os.environ, {"PATH": str(self.dir), "DSAT_HOST": ""}), \
                self.assertRaisesRegex(dsat.Error, "dsat-host may not be run: its file system or its mode forbids it"):
            dsat.tune(["true"])

    def test_a_search_without_a_best_is_a_study(self):
        study = self.tune(self.command("--device-memory", 1))
        self.assertEqual(study.status, "no_best")
        with self.assertRaises(dsat.Error):
            study.best_config

    def test_from_a_thread_and_inside_an_event_loop(self):
        async def in_loop():
            return await asyncio.to_thread(self.tune, output_dir="thread"), self.tune(output_dir="loop")
        for study in asyncio.run(in_loop()):
            self.assertEqual(study.status, "completed")

    def test_two_at_once_in_one_folder(self):
        entered, leave = threading.Event(), threading.Event()

        def hold(event):
            entered.set()
            leave.wait(60)
        first = []
        thread = threading.Thread(target=lambda: first.append(self.tune(on_event=hold)))
        thread.start()
        try:
            self.assertTrue(entered.wait(60))
            with self.assertRaisesRegex(dsat.Error, "run"):
                self.tune()
        finally:
            leave.set()
            thread.join()
        self.assertEqual(first[0].status, "completed")

    def test_a_callback_that_raises_ends_the_search_and_keeps_it(self):
        def fail(event):
            if event["event"] == "ended":
                raise RuntimeError("enough")
        with self.assertRaisesRegex(RuntimeError, "enough"):
            self.tune(on_event=fail, max_trials=100)
        study = dsat.Study(self.dir / "run", host=HOST)
        self.assertEqual(study.status, "interrupted")
        self.assertEqual(study.resume(show=False).status, "completed")

    def test_a_host_that_dies_is_an_error_that_says_how_to_go_on(self):
        def kill(event):
            if event["event"] == "ended" and event["trial"]["id"] == 2:
                os.kill(int(re.search(r"pid (\d+)", (self.dir / "run/dsat.lock").read_text()).group(1)), signal.SIGKILL)
        with self.assertRaisesRegex(dsat.Error, "signal 9; dsat.Study.*resume"):
            self.tune(on_event=kill, max_trials=100)
        self.assertEqual(dsat.Study(self.dir / "run", host=HOST).resume(show=False).status, "completed")

    def test_an_interrupt_ends_it_gently(self):
        long = {**OPTIONS, "max_trials": 200}
        script = ("import os, signal, sys, dsat\n"
                  "def stop(event):\n"
                  "    if event['event'] == 'ended' and event['trial']['id'] == 2:\n"
                  "        os.kill(os.getpid(), signal.SIGINT)\n"
                  f"study = dsat.tune({self.command()!r}, host={HOST!r}, on_event=stop, output_dir='run', **{long!r})\n"
                  "print(study.status)\n")
        done = subprocess.run([sys.executable, "-c", script], cwd=self.dir, capture_output=True, text=True, timeout=240,
                              env={**os.environ, "PYTHONPATH": str(PROJECT / "sdk/python")})
        self.assertEqual((done.returncode, done.stdout), (0, "interrupted\n"), done.stderr)
        self.assertEqual(done.stderr, "", "no terminal, no line")


class Events(HostTest):
    def test_a_descriptor_that_is_none(self):
        for fd, why in ((9, "not open for writing"), (1, "from 3"), ("x", "--events")):
            result = self.run_host(["--events", fd, "--output-dir", "run"])
            self.assertEqual((result.returncode, (self.dir / "run").exists()), (2, False), result.stderr)
            self.assertIn(why, result.stderr)

    def test_a_reader_that_goes_away_stops_the_study(self):
        read, write = os.pipe()
        process = self.start_host([HOST, "--events", str(write), "--output-dir", "run", "--", *self.command()],
                                  pass_fds=(write,))
        os.close(write)
        os.read(read, 1)
        os.close(read)
        process.communicate(timeout=60)
        self.assertEqual(self.show(self.dir / "run")["study"]["status"], "interrupted")

    def test_trials_do_not_inherit_it(self):
        read, write = os.pipe()
        trial = "import os, sys; os.fstat(int(sys.argv[1])); open('inherited', 'w')"
        result = subprocess.run([HOST, "--events", str(write), "--ds-config", "ds_config.json", "--output-dir", "run",
                                 "--", sys.executable, "-c", trial, str(write), "{ds_config}"], cwd=self.dir,
                                pass_fds=(write,), capture_output=True, text=True, timeout=120)
        os.close(write)
        os.close(read)
        self.assertIn("Bad file descriptor", result.stderr + result.stdout)
        self.assertFalse(list(self.dir.rglob("inherited")))


class Live(unittest.TestCase):
    def test_the_line_counts_and_names_the_best(self):
        line = LiveLine(show=False)
        for event in ({"event": "start", "max_trials": 8, "metric": "throughput"},
                      {"event": "started"}, {"event": "started"}, {"event": "ended"},
                      {"event": "best", "best": {"metric": 12.5, "trial": 3}}):
            line.take(event)
        self.assertEqual(line.text(), "dsat: 1 of 8 trials, 1 running, best throughput 12.5 (trial 3)")

    def test_a_resumed_study_counts_from_its_earlier_trials(self):
        line = LiveLine(show=False, ended=6)
        for event in ({"event": "start", "max_trials": 8}, {"event": "started"}, {"event": "ended"}):
            line.take(event)
        self.assertEqual(line.text(), "dsat: 7 of 8 trials, 0 running")


if __name__ == "__main__":
    unittest.main()
