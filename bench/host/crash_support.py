"""What the crash rounds share: a study of short trials with a ledger, its host, and the accounts of what is left."""
import collections
import json
import os
import pathlib
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
DECISIONS = ("id", "parent", "kind", "duplicate_of", "config", "overrides", "note", "outcome", "metrics")
CONFIG = {"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True},
          "optimizer": {"type": "Adam", "params": {"lr": 0.001}}, "zero_optimization": {"stage": 1}}


def build_trial(folder):
    """The ledger trial, compiled where it is needed."""
    program = pathlib.Path(folder) / "ledger_trial"
    subprocess.run(["cc", "-O1", "-o", str(program), str(HERE / "ledger_trial.c")], check=True)
    return program


class Study:
    """One study below `folder`: it may be started, killed and resumed as often as one likes."""

    def __init__(self, build, trial, folder, options, trial_options=()):
        self.host = str(pathlib.Path(build).resolve() / "dsat-host")
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run = self.folder / "run"
        self.ledger = self.folder / "ledger"
        (self.folder / "ds_config.json").write_text(json.dumps(CONFIG))
        self.start = [self.host, *map(str, options), "--quiet", "--metric", "throughput", "--device-memory", "1GB",
                      "--output-dir", "run", "--", str(trial), "--deepspeed_config", "ds_config.json", "--ledger",
                      str(self.ledger), *map(str, trial_options)]
        self.go_on = [self.host, "resume", "run", "--quiet"]

    def exists(self):
        return (self.run / "dsat.db").exists()

    def spawn(self, arguments=None, **environment):
        """Starts the study, or goes on with it, whichever its folder allows."""
        arguments = arguments or (self.go_on if self.exists() else self.start)
        with open(self.folder / "output", "w") as output:
            return subprocess.Popen(arguments, cwd=self.folder, env={**os.environ, **environment}, stdout=output,
                                    stderr=subprocess.PIPE, text=True, start_new_session=True)

    def finish(self, timeout=600):
        process = self.spawn()
        try:
            _, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, "it did not end"
        return process.returncode, err

    def kill_after(self, seconds):
        """True: the host was killed; False: it had ended before."""
        process = self.spawn()
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        return process.returncode == -signal.SIGKILL

    def command(self, *arguments, timeout=120):
        return subprocess.run([self.host, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=timeout)

    def trials(self):
        shown = self.command("show", "run", "--json")
        if shown.returncode != 0:
            raise RuntimeError(shown.stderr)
        return json.loads(shown.stdout)["trials"]

    def decisions(self):
        """The search as its strategies made it: everything but times, slots and ports."""
        return [{key: trial[key] for key in DECISIONS} for trial in self.trials()]

    def ledger_lines(self):
        lines = self.ledger.read_text().split("\n")[:-1] if self.ledger.exists() else []
        return [tuple(line.split()[:2]) for line in lines]

    def counted_twice(self):
        """Trials whose result was complete and that ran to a complete result again."""
        ends = collections.Counter(trial for what, trial in self.ledger_lines() if what == "end")
        return sorted(trial for trial, count in ends.items() if count > 1)

    def processes(self):
        return processes_of(str(self.run))


def processes_of(text):
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


def describe(pid):
    """What a process is, and what it waits for: a line that says why it is still there."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        words = [f"{key} {status[key].strip()}" for key in ("State", "PPid", "Threads", "SigBlk", "SigPnd", "ShdPnd")]
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return f"{pid} ({command.strip()[:200]}; {', '.join(words)}, in {(folder / 'wchan').read_text()})"
    except OSError as error:
        return f"{pid} (it ended meanwhile: {error.strerror})"


def wait_until_none(study, seconds=10):
    """Descriptions of the study's processes that are left after so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := study.processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [describe(pid) for pid in left]


def finished(trials):
    return {trial["id"]: trial for trial in trials if trial["outcome"]}


def lost_between(before, after):
    """Trials that had an outcome and have none, or another one, later."""
    now = finished(after)
    return sorted(i for i, trial in finished(before).items() if i not in now or now[i]["outcome"] != trial["outcome"])


class Tally(collections.Counter):
    """Counts of what went wrong, and a line for each of the first ones."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def wrong(self, what, line):
        self[what] += 1
        if len(self.lines) < 20:
            self.lines.append(f"{what}: {line}")
