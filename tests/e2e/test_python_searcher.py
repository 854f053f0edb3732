"""Searchers in Python: the rules of every searcher, and defects that cost the study nothing."""
import json
import os
import re
import signal
import subprocess
import textwrap

from support import HOST, PROJECT, HostTest

EXAMPLES = PROJECT / "examples/plugins/searcher_python"
SIMULATION = ["--runner", "sim", "--sim", PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"]

# A searcher that works; a defect replaces one of its parts.
PARTS = {
    "head": "import dsat, os, sys, time, threading",
    "class": "class Mine(dsat.Searcher):\n    'asks for ten trials'",
    "options": "options = [dsat.Option('first', 1, 'the first micro batch', min=1, max=8)]",
    "start": "def start(self, study):\n    self.space = dsat.Space(study['space'])\n    self.asked = 0\n    self.ask()",
    "result": "def on_result(self, result): pass",
    "exited": "def on_trial_exited(self, exit): self.ask()",
    "ask": ("def ask(self):\n    if self.asked == 10: return self.finish('ten')\n    self.asked += 1\n"
            "    axes = self.space.axes(2)\n"
            "    first = [v[0] for _, v in axes]\n"
            "    self.create_trial(self.space.overrides(2, self.option['first'] + self.asked, first))"),
    "state": "",
}
# name: (part, its text, whether a study was begun, what the message says)
DEFECTS = {
    "syntax": ("head", "import dsat\nx = (", False, r"mine\.py:\d+: SyntaxError"),
    "import": ("head", "import dsat, no_such_module", False, r"mine\.py:1: ModuleNotFoundError.*no_such_module"),
    "raises while loaded": ("head", "import dsat\n1 / 0", False, r"mine\.py:2: ZeroDivisionError"),
    "exits while loaded": ("head", "import dsat, sys\nsys.exit(7)", False, "exit status 7"),
    "no class": ("class", "class Mine:\n    'no searcher'", False, "no class that derives from dsat.Searcher"),
    "options are none": ("options", "options = 3", False, "TypeError"),
    "option of no type": ("options", "options = [dsat.Option('first', [1], 'help')]", False, "its default is a list"),
    "option name": ("options", "options = [dsat.Option('First one', 1, 'help')]", False, "kebab-case"),
    "option bounds": ("options", "options = [dsat.Option('first', 9, 'help', max=8)]", False, "above its max"),
    "create raises": ("state", "def __init__(self, *a): raise KeyError('x')", False, "create: .*KeyError"),
    "create refuses": ("state", "def __init__(self, *a): raise dsat.Error('a larger one')", False, "a larger one"),
    "create exits": ("state", "def __init__(self, *a): os._exit(3)", False, "exit status 3"),
    "wishes": ("state", "study = {'zero_stages': [7]}", False, "zero_stages"),
    "start raises": ("start", "def start(self, study): raise ValueError('no')", True,
                     r"start: .*mine\.py:\d+: ValueError: no"),
    "no start": ("start", "", True, r"write start\(self, study\)"),
    "no exited": ("exited", "", True, r"write on_trial_exited\(self, exit\)"),
    "start of the wrong shape": ("start", "def start(self): pass", True, "TypeError"),
    "exited raises": ("exited", "def on_trial_exited(self, exit): raise OSError(5, 'gone')", True, "OSError"),
    "exited exits": ("exited", "def on_trial_exited(self, exit): sys.exit(9)", True, "exit status 9"),
    "exited crashes": ("exited", "def on_trial_exited(self, exit): os.kill(os.getpid(), 11)", True, "signal 11"),
    "exited kills itself": ("exited", "def on_trial_exited(self, exit): os.kill(os.getpid(), 9)", True, "signal 9"),
    "recursion": ("exited", "def on_trial_exited(self, exit): self.on_trial_exited(exit)", True, "RecursionError"),
    "memory": ("exited", "def on_trial_exited(self, exit): self.x = bytearray(1 << 40)", True, "MemoryError"),
    "sleeps": ("exited", "def on_trial_exited(self, exit): time.sleep(60)", True, "--plugin-timeout"),
    "closes the connection": ("exited", "def on_trial_exited(self, exit): os.close(3)", True, "its process|OSError"),
    "closes all": ("exited", "def on_trial_exited(self, exit): os.closerange(0, 99)", True, "its process|OSError"),
    "writes to the connection": ("exited", "def on_trial_exited(self, exit): os.write(3, b'n' * 99)", True, "message"),
    "a NaN": ("ask", "def ask(self): self.create_trial({'a': float('nan')})", True, "create_trial: overrides"),
    "no JSON": ("ask", "def ask(self): self.create_trial({'a': object()})", True, "create_trial: overrides"),
    "overrides are none": ("ask", "def ask(self): self.create_trial(None)", True, "give a dictionary"),
    "overrides in a circle": ("ask", "def ask(self):\n    a = {}\n    a['a'] = a\n    self.create_trial(a)", True,
                              "overrides"),
    "a parent that is none": ("ask", "def ask(self): self.create_trial({}, parent=99)", True, "no trial 99"),
    "stops a trial that is none": ("ask", "def ask(self): self.stop_trial(-1)", True, "no trial -1"),
    "best is none": ("ask", "def ask(self): self.finish('x', best='b')", True, "no trial 'b'"),
    "asks after finish": ("ask", "def ask(self):\n    self.finish('x')\n    self.create_trial({})", True,
                          "after finish"),
    "asks without end": ("ask", "def ask(self):\n    while True: self.stop_trial(0)", True, "more than 10000 requests"),
    "asks from a thread": ("ask", "def ask(self):\n    def other():\n        try: self.create_trial({})\n"
                           "        except dsat.Error as error: self.seen = error\n"
                           "    thread = threading.Thread(target=other); thread.start(); thread.join()\n"
                           "    raise self.seen", True, "another thread"),
}
# These change nothing: the study ends well.
HARMLESS = {
    "prints": ("exited", "def on_trial_exited(self, exit): print('hello'); sys.stderr.write('x' * 100000); self.ask()"),
    "returns nonsense": ("exited", "def on_trial_exited(self, exit):\n    self.ask()\n    return {'op': 'finish'}"),
    "forks": ("exited", "def on_trial_exited(self, exit):\n    self.ask()\n    if os.fork() == 0: time.sleep(30)"),
    "a thread stays": ("start", PARTS["start"] + "\n    threading.Thread(target=time.sleep, args=(30,)).start()"),
    "saves no bytes": ("state", "def save(self): return 'text'\ndef restore(self, study, state): pass"),
    "save raises": ("state", "def save(self): raise ValueError('s')\ndef restore(self, study, state): pass"),
    "logs": ("result", "def on_result(self, result): self.log('a line\\nof two \\x1b[2J', 'warning')"),
}


def source(part=None, text=None):
    parts = {**PARTS, **({part: text} if part else {})}
    body = "\n".join(parts[name] for name in ("options", "start", "result", "exited", "ask", "state"))
    return parts["head"] + "\n\n\n" + parts["class"] + "\n" + textwrap.indent(body, "    ") + "\n"


class PythonSearcher(HostTest):
    def write(self, text, name="mine.py"):
        (self.dir / name).write_text(text)

    def run_searcher(self, *options, searcher="mine.py", run="run"):
        words = [HOST, *SIMULATION, "--searcher", searcher, "--output-dir", run, "--finals", 0, *options]
        return subprocess.run([str(word) for word in words], cwd=self.dir, capture_output=True, text=True)

    def resume(self):
        words = [HOST, "resume", "run", "--max-trials", "8"]
        return subprocess.run(words, cwd=self.dir, capture_output=True, text=True)

    def test_it_decides_as_every_searcher(self):
        self.write(source())
        self.assert_ok(self.run_searcher("--first", 3))
        asked = [t for t in self.show(self.dir / "run")["trials"] if t["kind"] == "search" or t["kind"] == "duplicate"]
        self.assertEqual([t["config"]["train_micro_batch_size_per_gpu"] for t in asked], list(range(4, 14)))

    def test_the_same_seed_is_the_same_search(self):
        for run in ("one", "two"):
            self.assert_ok(self.run_searcher("--max-trials", 15, searcher=EXAMPLES / "random_search.py", run=run))
        self.assertEqual(self.decisions(self.dir / "one"), self.decisions(self.dir / "two"))

    def test_a_killed_study_goes_on_as_if_nothing_had_been(self):
        options = ["--searcher", EXAMPLES / "random_search.py", "--max-trials", 20, "--device-memory", "1GB", "--quiet"]
        self.assert_ok(self.run_host([*options, "--output-dir", "reference"]))
        process = self.start_host(self.arguments([*options, "--output-dir", "run", "--json"], self.command()))
        while len(list((self.dir / "run").glob("trials/*/exit.json"))) < 6 and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        resumed = subprocess.run([HOST, "resume", "run"], cwd=self.dir, capture_output=True, text=True, timeout=240)
        self.assert_ok(resumed)
        self.assertEqual(self.decisions(self.dir / "run"), self.decisions(self.dir / "reference"))

    def test_saved_states_and_lost_processes(self):
        state = ("def save(self): return bytes([self.asked])\n"
                 "def restore(self, study, state): self.space, self.asked = dsat.Space(study['space']), state[0]")
        self.write(source("state", state), "saves.py")
        once = PARTS["exited"].replace("self.ask()", "\n        if exit.trial == 6 and not os.path.exists('once'):\n"
                                       "            open('once', 'w').close(); os._exit(1)\n        self.ask()")
        self.write(source("exited", once), "dies.py")
        self.write(source())
        for searcher, run in (("mine.py", "plain"), ("saves.py", "saves"), ("dies.py", "dies")):
            result = self.run_searcher(searcher=searcher, run=run)
            self.assert_ok(result)
            self.assertEqual("restart 1 of 3" in result.stdout + result.stderr, run == "dies")
        for run in ("saves", "dies"):
            self.assertEqual(self.decisions(self.dir / run), self.decisions(self.dir / "plain"))

    def test_a_changed_file_is_noticed(self):
        self.write(source())
        self.assert_ok(self.run_searcher("--max-trials", 5), 0)
        self.write(source() + "# changed\n")
        result = self.resume()
        self.assertEqual(result.returncode, 2)
        self.assertIn("has changed", result.stderr)

    def test_several_in_a_file_are_named_by_their_class(self):
        self.write(source() + "\n\nclass Second(Mine):\n    'another'\n")
        result = self.run_searcher()
        self.assertEqual(result.returncode, 2)
        self.assertIn("name one: mine.py:Mine", result.stderr)
        result = self.run_searcher(searcher="mine.py:Third")
        self.assertIn("no searcher Third; it has Mine, Second", result.stderr)
        self.assert_ok(self.run_searcher("--max-trials", 6, searcher="mine.py:Second"))
        resumed = self.resume()
        self.assert_ok(resumed)

    def test_without_python_it_says_so(self):
        self.write(source())
        os.environ["DSAT_PYTHON"] = "/nowhere/python3"
        self.addCleanup(os.environ.pop, "DSAT_PYTHON")
        result = self.run_searcher()
        self.assertEqual(result.returncode, 4)
        self.assertIn("/nowhere/python3 cannot be run", result.stderr)

    def test_defects_cost_nothing(self):
        for number, (name, (part, text, begun, says)) in enumerate(DEFECTS.items()):
            with self.subTest(name):
                self.write(source(part, text))
                run = f"run{number}"
                result = self.run_searcher("--plugin-timeout", "1s" if name == "sleeps" else "20s", run=run)
                self.assertEqual(result.returncode, 2 if name == "create refuses" else 4, result.stderr)
                self.assertRegex(result.stderr, says)
                self.assertEqual((self.dir / run / "dsat.db").exists(), begun, result.stderr)
                if begun:
                    check = subprocess.run([HOST, "check", run], cwd=self.dir, capture_output=True, text=True)
                    self.assert_ok(check)

    def test_what_is_harmless_changes_nothing(self):
        self.write(source())
        self.assert_ok(self.run_searcher(run="plain"))
        for number, (name, (part, text)) in enumerate(HARMLESS.items()):
            with self.subTest(name):
                self.write(source(part, text))
                self.assert_ok(self.run_searcher(run=f"run{number}"))
                self.assertEqual(self.decisions(self.dir / f"run{number}"), self.decisions(self.dir / "plain"))

    def test_validate_knows_it(self):
        result = subprocess.run([HOST, "validate", str(EXAMPLES / "random_search.py"), "--json"], capture_output=True,
                                text=True)
        self.assert_ok(result)
        self.assertEqual(json.loads(result.stdout)["summary"]["passed"], 13)
        self.write(source("ask", PARTS["ask"].replace("+ self.asked", "+ int(time.monotonic_ns() % 97)")))
        result = subprocess.run([HOST, "validate", "mine.py"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertTrue(re.search(r"failed +determinism of Mine", result.stdout), result.stdout)
