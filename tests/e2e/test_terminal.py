"""What a terminal shows while a study runs, captured by tmux; and what goes into a pipe."""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import FIXTURES, HostTest

ESCAPE = "\x1b"
# Trials behind the profile's run until the study is ended.
GATE = f"""
import os, sys, time
sys.path.insert(0, {str(FIXTURES)!r})
import protocol_trial
while int(os.environ["DSAT_TRIAL_ID"]) > 3:
    time.sleep(0.1)
sys.exit(protocol_trial.main())
"""
PICTURE = re.compile(r"^(best|running|fits)  ")


class Tmux:
    """A server of its own with one window, whose shell leaves its exit status on the screen."""

    def __init__(self, folder, columns, rows, environment):
        self.socket = tempfile.mkdtemp(prefix="dsat-tmux-") + "/s"
        clean = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR", "TMUX")}
        clean.update({"LC_ALL": "C.UTF-8"}, **environment)
        self.call("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder), "sh",
                  env=clean)

    def call(self, *arguments, env=None):
        result = subprocess.run(["tmux", "-S", self.socket, *arguments],
                                env=env, capture_output=True, text=True, timeout=30)
        if result.returncode != 0:
            raise AssertionError(f"tmux {arguments}: {result.stderr}")
        return result.stdout

    def type(self, command):
        self.call("send-keys", "-l", command)
        self.call("send-keys", "Enter")

    def key(self, name):
        self.call("send-keys", name)

    def resize(self, columns, rows=24):
        self.call("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self, *options):
        return self.call("capture-pane", "-p", *options).rstrip("\n").split("\n")

    def state(self, name):
        return self.call("display-message", "-p", "#{%s}" % name).strip()

    def wait_for(self, condition, seconds=90):
        """The screen's lines once they meet the condition."""
        end = time.monotonic() + seconds
        while True:
            lines = self.lines()
            if condition(lines):
                return lines
            if time.monotonic() > end:
                raise AssertionError("the terminal never showed it:\n" + "\n".join(lines))
            time.sleep(0.05)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=30)
        shutil.rmtree(os.path.dirname(self.socket), ignore_errors=True)


def has(text):
    return lambda lines: any(text in line for line in lines)


def picture_of(lines):
    return [line for line in lines if PICTURE.match(line)]


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Terminal(HostTest):
    def open(self, columns=80, rows=24, **environment):
        terminal = Tmux(self.dir, columns, rows, environment)
        self.addCleanup(terminal.close)
        return terminal

    def tune(self, *options, misbehave=None, into="run", command=None):
        command = command or self.command(*(["--misbehave", misbehave] if misbehave else []))
        line = shlex.join(self.arguments(["--searcher", "random", "--output-dir", into, *options], command))
        # In a file: what is typed would stand on the screen.
        script = f"stty -g > before\n{line}\necho ended with $?\nstty -g > after\n"
        (self.dir / into).with_suffix(".sh").write_text(script)
        return f"clear; . ./{into}.sh"

    def start_hanging(self, terminal, into="run"):
        terminal.type(self.tune("--max-trials", "8", misbehave="hang", into=into))
        return terminal.wait_for(lambda lines: has("0/8 trials")(lines) and has("running   trial 0")(lines))

    def assert_same_settings(self, terminal):
        terminal.type("cmp before after && echo same settings")
        terminal.wait_for(lambda lines: "same settings" in lines)

    def test_the_picture_has_bar_best_and_the_running_trial(self):
        lines = self.start_hanging(self.open())
        self.assertTrue(has("\u2500" * 10)(lines), lines)
        self.assertTrue(has("best      none yet")(lines), lines)
        self.assertTrue(all(len(line) <= 80 for line in lines), lines)

    def test_the_best_has_its_distance_to_your_own_configuration_that_the_profile_measured(self):
        (self.dir / "gate.py").write_text(GATE)
        terminal = self.open(columns=120)
        command = [sys.executable, "-S", "-E", "gate.py", "--deepspeed_config", "ds_config.json"]
        terminal.type(self.tune("--max-trials", "8", command=command))
        lines = terminal.wait_for(has("% against your own"))
        self.assertTrue(any(line.startswith("best ") and line.endswith("% against your own") for line in lines), lines)
        kinds = [trial["kind"] for trial in self.show(self.dir / "run")["trials"]]
        self.assertNotIn("baseline", kinds, "a trial of its own has measured it")

    def resized_while_one_picture_stands(self, into):
        """The terminal and its lines, or None where it showed more than one picture."""
        terminal = self.open()
        self.start_hanging(terminal, into)
        for columns in (40, 100, 25, 80):
            terminal.resize(columns)
            try:
                lines = terminal.wait_for(
                    lambda lines: len(picture_of(lines)) == 2 and has("0/8 trials")(lines), seconds=20)
            except AssertionError:
                return None
        return terminal, lines

    def test_a_picture_that_is_resized_stays_one_picture_and_ctrl_c_takes_it_away(self):
        # tmux folds its lines first and tells the new width later: a frame in between, one a second, meets a width
        # that nobody has reported, and a copy stays. That happens at times, not three times in a row.
        tries = (self.resized_while_one_picture_stands(f"run{i}") for i in range(3))
        shown = next((shown for shown in tries if shown), None)
        self.assertIsNotNone(shown, "three times two pictures")
        terminal, lines = shown
        self.assertEqual(sum("0/8 trials" in line for line in lines), 1, lines)
        terminal.key("C-c")
        lines = terminal.wait_for(has("ended with 3"))
        self.assertEqual(picture_of(lines), [])
        self.assertFalse(has("0/8 trials")(lines), lines)
        self.assertEqual(terminal.state("cursor_flag"), "1")
        self.assert_same_settings(terminal)

    def test_a_killed_host_leaves_a_terminal_that_needs_no_cleaning(self):
        terminal = self.open()
        self.start_hanging(terminal)
        os.kill(self.host_in(self.dir), signal.SIGKILL)
        lines = terminal.wait_for(has("ended with 137"))
        self.assertTrue(any(line.startswith("ended with 137") for line in lines),
                        "behind the picture, on a line of its own")
        self.assertEqual(terminal.state("cursor_flag"), "1")
        self.assert_same_settings(terminal)

    @staticmethod
    def host_in(folder):
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if (entry / "comm").read_text().strip() == "dsat-host" and os.readlink(entry / "cwd") == str(folder):
                    return int(entry.name)
            except OSError:
                continue
        raise AssertionError("no host runs")

    def test_a_whole_study_ends_without_a_trace_of_the_picture(self):
        terminal = self.open(rows=200)
        terminal.type(self.tune("--max-trials", "6"))
        lines = terminal.wait_for(has("ended with 0"))
        self.assertEqual(picture_of(lines), [])
        self.assertFalse(has("\u2500")(lines), lines)
        trials = [line for line in lines if line.startswith("trial ")]
        self.assertEqual(len({line[:9] for line in trials}), 6, lines)
        self.assertTrue(has("FLOP/s  best")(lines), lines)

    def test_no_color_leaves_the_picture_without_colours(self):
        colours = re.compile(ESCAPE + r"\[[0-9;]*m")
        terminal = self.open()
        self.start_hanging(terminal)
        self.assertTrue(any(colours.search(line) for line in terminal.lines("-e")))
        plain = self.open(NO_COLOR="1")
        self.start_hanging(plain, into="other")
        self.assertFalse(any(colours.search(line) for line in plain.lines("-e")))

    def test_ci_and_quiet_have_plain_lines(self):
        for into, environment, options in (("ci", {"CI": "true"}, []), ("quiet", {}, ["--quiet"])):
            terminal = self.open(rows=200, **environment)
            terminal.type(self.tune("--max-trials", "4", *options, into=into))
            lines = terminal.wait_for(has("ended with 0"))
            self.assertEqual(any(line.startswith("trial 0 ") for line in lines), not options, lines)
            self.assertFalse(has("\u2501")(lines) or has("/4 trials")(lines), lines)


class Pipe(HostTest):
    def test_has_short_lines_without_escapes(self):
        result = self.run_host(["--searcher", "random", "--max-trials", "6"])
        self.assert_ok(result)
        self.assertNotIn(ESCAPE, result.stdout)
        trials = [line for line in result.stdout.splitlines() if re.match(r"trial +\d+  stage", line)]
        self.assertEqual(len(trials), 6)
        self.assertLessEqual(max(map(len, trials)), 80)
        self.assertRegex(result.stdout, r"trial 1  stage 1  micro batch +\d+ +[\d.]+ [GT]FLOP/s  best  profile")

    def test_verbose_has_reasons(self):
        options = ["--searcher", "random", "--max-trials", "3"]
        short = self.run_host([*options, "--output-dir", "a"], self.command("--misbehave", "typo"))
        long = self.run_host([*options, "--output-dir", "b", "-v"], self.command("--misbehave", "typo"))
        line = next(line for line in short.stdout.splitlines() if line.startswith("trial 0 "))
        self.assertNotIn("NameError", line)
        line = next(line for line in long.stdout.splitlines() if line.startswith("trial 0 "))
        self.assertIn("NameError", line)


if __name__ == "__main__":
    unittest.main()
