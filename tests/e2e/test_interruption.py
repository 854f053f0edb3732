"""Pulling the plug at any moment loses nothing."""
import json
import os
import signal
import subprocess
import time
import unittest

from support import HOST, HostTest, processes_with

OPTIONS = ["--searcher", "asha", "--max-trials", 30, "--device-memory", "1GB", "--quiet"]


class Interruption(HostTest):
    def wait_for_trials(self, run_dir, count, process):
        """Until the journal shows `count` ended trials; the host tells, trial by trial, on its output."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            ended = len(list(run_dir.glob("trials/*/exit.json")))
            if ended >= count:
                return
            time.sleep(0.01)
        self.fail(f"{count} trials did not end: {process.poll()}")

    def resume(self, run_dir, *options):
        return subprocess.run([HOST, "resume", str(run_dir), *map(str, options)],
                              cwd=self.dir, capture_output=True, text=True, timeout=240)

    def assert_same_search(self, run_dir, reference):
        trials = self.show(run_dir)["trials"]
        self.assertEqual([t["id"] for t in trials], list(range(len(trials))))
        self.assertEqual(self.decisions(run_dir), self.decisions(reference))
        return trials

    def reference(self):
        self.assert_ok(self.run_host([*OPTIONS, "--output-dir", "reference"]))
        return self.dir / "reference"

    def test_killed_hosts_lose_no_finished_trial(self):
        reference = self.reference()
        run_dir = self.dir / "killed"
        process = self.start_host(self.arguments([*OPTIONS, "--output-dir", run_dir], self.command()))
        for wanted in (2, 7, 8, 15):
            self.wait_for_trials(run_dir, wanted, process)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.wait_until_gone(str(run_dir))
            finished = [t for t in self.show(run_dir)["trials"] if t["outcome"]]
            process = self.start_host([HOST, "resume", str(run_dir), "--quiet"])
            self.finished_stay(run_dir, finished)
        self.assertEqual(process.wait(timeout=240), 0)
        self.assert_same_search(run_dir, reference)

    def finished_stay(self, run_dir, finished):
        now = {t["id"]: t for t in self.show(run_dir)["trials"]}
        for trial in finished:
            self.assertEqual(now[trial["id"]], trial)

    def wait_until_gone(self, text):
        deadline = time.monotonic() + 10
        while processes_with(text):
            self.assertLess(time.monotonic(), deadline, f"left behind: {processes_with(text)}")
            time.sleep(0.01)

    def test_killed_hosts_leave_no_trial_process(self):
        run_dir = self.dir / "hanging"
        process = self.start_host(self.arguments(["--output-dir", run_dir],
                                                 self.command("--misbehave", "leave_child", "--misbehave", "hang")))
        self.wait_for_line(run_dir / "trials/0/stdout.log", "ready")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.wait_until_gone(str(run_dir))

    def wait_for_line(self, file, text):
        deadline = time.monotonic() + 60
        while not (file.exists() and text in file.read_text()):
            self.assertLess(time.monotonic(), deadline, f"no '{text}' in {file}")
            time.sleep(0.01)

    def test_one_interrupt_saves_and_says_how_to_go_on(self):
        reference = self.reference()
        run_dir = self.dir / "interrupted"
        process = self.start_host(self.arguments([*OPTIONS, "--output-dir", run_dir], self.command()))
        self.wait_for_trials(run_dir, 6, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        self.assertIn(f"dsat-host resume {run_dir}", out + err)
        self.assertEqual(processes_with(str(run_dir)), [])
        self.assert_ok(self.resume(run_dir))
        self.assert_same_search(run_dir, reference)

    def test_a_second_interrupt_ends_at_once_what_ignores_the_first(self):
        run_dir = self.dir / "stubborn"
        process = self.start_host(self.arguments(["--output-dir", run_dir], self.command("--misbehave", "ignore_term")))
        self.wait_for_line(run_dir / "trials/0/stdout.log", "ready")
        process.send_signal(signal.SIGINT)
        # The first has arrived when the trial is to end, which it ignores.
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=5), 3)
        self.wait_until_gone(str(run_dir))  # what the host has not waited for dies with it

    def test_a_raised_limit_takes_a_finished_study_up_again(self):
        reference = self.reference()
        run_dir = self.dir / "short"
        short = ["--max-trials" if o == "--max-trials" else 12 if o == 30 else o for o in OPTIONS]
        self.assert_ok(self.run_host([*short, "--output-dir", run_dir]))
        before = self.show(run_dir)["trials"]
        again = self.resume(run_dir, "--json")
        self.assert_ok(again)
        self.assertEqual(json.loads(again.stdout)["status"], "completed")
        self.assertEqual(self.show(run_dir)["trials"], before)
        self.assert_ok(self.resume(run_dir, "--max-trials", 30))
        self.assert_same_search(run_dir, reference)

    def test_a_live_study_is_not_taken_up(self):
        run_dir = self.dir / "running"
        self.start_host(self.arguments(["--output-dir", run_dir], self.command("--misbehave", "hang")))
        self.wait_for_line(run_dir / "trials/0/stdout.log", "ready")
        result = self.resume(run_dir)
        self.assert_ok(result, 2)
        self.assertIn("its study is live", result.stderr)
        self.assertIn(str(os.uname().nodename), result.stderr)

    def test_a_folder_without_a_study_is_not_taken_up(self):
        result = self.resume(self.dir)
        self.assert_ok(result, 2)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1)

    def test_show_reads_a_study_that_is_live(self):
        run_dir = self.dir / "running"
        process = self.start_host(self.arguments(["--output-dir", run_dir], self.command("--misbehave", "hang")))
        self.wait_for_line(run_dir / "trials/0/stdout.log", "ready")
        self.assertEqual([trial["outcome"] for trial in self.show(run_dir)["trials"]], [None])
        self.assertIsNone(process.poll())

    def test_show_reads_a_study_on_read_only_media(self):
        run_dir = self.reference()
        copy = self.dir / "copy"
        copy.mkdir()
        (copy / "dsat.db").write_bytes((run_dir / "dsat.db").read_bytes())
        mount = f"mount --bind {copy} {copy} && mount -o remount,bind,ro {copy}"
        alone = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh", "-c"]
        if subprocess.run([*alone, f"{mount} && ! touch {copy}/new"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        shown = subprocess.run([*alone, f"{mount} && exec {HOST} show {copy} --json"],
                               capture_output=True, text=True, timeout=60)
        self.assert_ok(shown)
        self.assertEqual(json.loads(shown.stdout)["trials"], self.show(run_dir)["trials"])
        self.assertEqual([p.name for p in copy.iterdir()], ["dsat.db"])


if __name__ == "__main__":
    unittest.main()
