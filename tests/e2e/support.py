"""What the end-to-end tests share: a folder of their own, the program under test, a protocol script to tune."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["DSAT_BUILD_DIR"])
HOST = str(BUILD / "dsat-host")
PROJECT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = PROJECT / "tests/fixtures"

# Tests interrupt what they start. A job in the background, and nohup, would hand down that interrupts are ignored.
for inherited in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(inherited) == signal.SIG_IGN:
        signal.signal(inherited, signal.SIG_DFL)

SCRIPT = [sys.executable, "-S", "-E", str(FIXTURES / "protocol_trial.py")]

CONFIG = {
    "train_micro_batch_size_per_gpu": 1,
    "fp16": {"enabled": True},
    "optimizer": {"type": "Adam", "params": {"lr": 0.001, "betas": [0.9, 0.999]}},
    "zero_optimization": {"stage": 1},
}


class HostTest(unittest.TestCase):
    """A test with a folder of its own, `self.dir`, that holds ds_config.json."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-e2e-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.write_config(CONFIG)

    def write_config(self, config):
        text = config if isinstance(config, str) else json.dumps(config, indent=1)
        (self.dir / "ds_config.json").write_text(text)

    def command(self, *extra):
        """The protocol script as a training command."""
        return SCRIPT + ["--deepspeed_config", "ds_config.json", *map(str, extra)]

    def arguments(self, options, command):
        return [HOST, *map(str, options), "--", *command]

    def run_host(self, options, command=None, timeout=240):
        arguments = self.arguments(options, self.command() if command is None else command)
        return subprocess.run(arguments, cwd=self.dir, capture_output=True, text=True, timeout=timeout)

    def start_host(self, arguments, **how):
        """In the background, as the leader of a process group of its own."""
        process = subprocess.Popen(arguments, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, **how)
        self.addCleanup(self.end_process, process)
        return process

    @staticmethod
    def end_process(process):
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()

    def show(self, run_dir):
        result = subprocess.run([HOST, "show", str(run_dir), "--json"],
                                cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def decisions(self, run_dir):
        """The search as its strategies made it: everything but times, slots and ports."""
        keys = ("id", "parent", "kind", "duplicate_of", "config", "overrides", "note", "outcome", "metrics")
        return [{key: trial[key] for key in keys} for trial in self.show(run_dir)["trials"]]

    def assert_ok(self, result, status=0):
        self.assertEqual(result.returncode, status, result.stdout[-2000:] + result.stderr[-4000:])


def processes_with(text):
    """Ids of live processes whose command line or environment holds `text`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            whole = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if state != "Z" and text.encode() in whole:
            found.append(int(entry.name))
    return found
