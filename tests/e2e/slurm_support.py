"""What the tests on a real Slurm share: one cluster a module, allocations, studies in the background."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import mini_slurm
from support import FIXTURES, HOST, HostTest

# A protocol script that first waits: for SECONDS, or until a file is there.
PATIENT = r"""
import os, subprocess, sys, time
wait, rest = sys.argv[1], sys.argv[2:]
if wait.startswith("/"):
    end = time.monotonic() + 120
    while not os.path.exists(wait) and time.monotonic() < end: time.sleep(0.05)
else:
    time.sleep(float(wait))
os.execv(sys.executable, [sys.executable, "-S", "-E", *rest])
"""

# The search proper, small: the same trials whoever runs them.
SMALL = ["--searcher", "random", "--max-trials", "6", "--zero-stages", "1", "2", "--max-micro-batch", "8",
         "--no-baseline", "--finals", "0", "--no-probe"]

# As above, still smaller.
FEW = ["--searcher", "grid", "--max-trials", "4", "--zero-stages", "1", "--max-micro-batch", "8", "--no-baseline",
       "--finals", "0", "--no-probe", "--max-concurrent-trials", "2", "--slots-per-trial", "1"]


def varied(options, *pairs):
    """The options with some values replaced: an option may be given only once."""
    result = list(options)
    for option, value in zip(pairs[::2], pairs[1::2]):
        if option in result:
            result[result.index(option) + 1] = value
        else:
            result += [option, value]
    return result


ONE_BY_ONE = varied(FEW, "--max-concurrent-trials", "1", "--max-trials", "3")


class SlurmTest(HostTest):
    """Tests of one class share a cluster of four nodes with eight processors and two GPUs each."""

    conf, partitions = {}, ()  # more of slurm.conf
    private = None             # a folder that the nodes do not share
    cpus = 8                   # that each of the four nodes claims

    @classmethod
    def setUpClass(cls):
        reason = mini_slurm.why_not(cls.private)
        if reason:
            raise unittest.SkipTest(f"no Slurm here: {reason}")
        folder = tempfile.mkdtemp(prefix="slurm-")
        cls.slurm = mini_slurm.MiniSlurm(folder, cpus=cls.cpus, conf=cls.conf, partitions=cls.partitions,
                                          private=cls.private)
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.addClassCleanup(cls.slurm.stop)
        cls.slurm.start()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.slurm.run, "scancel", "--user=root", check=False)
        (self.dir / "patient.py").write_text(PATIENT)

    def patient(self, wait, *more):
        """A training command that waits and then behaves as the protocol says."""
        script = [sys.executable, "-S", "-E", "patient.py", str(wait), str(FIXTURES / "protocol_trial.py")]
        return script + ["--deepspeed_config", "ds_config.json", *more]

    def allocate(self, *options):
        """An allocation without a shell; returns the variables of a program in it."""
        done = subprocess.run(["salloc", "--no-shell", *options], env=self.slurm.environment(), text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = re.search(r"allocation (\d+)", done.stderr).group(1)
        self.addCleanup(self.slurm.run, "scancel", job, check=False)
        return {"SLURM_JOB_ID": job}

    def tune(self, name, options, command=None, in_allocation=None, status=0):
        """Runs a study to its end in the folder `name`."""
        result = self.run_slurm(name, options, command, in_allocation)
        self.assert_ok(result, status)
        return result

    def run_slurm(self, name, options, command=None, in_allocation=None, timeout=240):
        environment = self.slurm.environment(**(in_allocation or {}))
        arguments = self.arguments(["--output-dir", name, *options], command or self.command())
        return subprocess.run(arguments, cwd=self.dir, env=environment, capture_output=True, text=True, timeout=timeout)

    def start(self, name, options, command, in_allocation=None):
        arguments = self.arguments(["--output-dir", name, *options], command)
        return self.start_in_cluster(arguments, in_allocation)

    def start_in_cluster(self, arguments, in_allocation=None):
        process = subprocess.Popen([str(a) for a in arguments], cwd=self.dir, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True,
                                   env=self.slurm.environment(**(in_allocation or {})))
        self.addCleanup(self.end_process, process)
        return process

    @staticmethod
    def end_process(process):
        if not process.stdout.closed:
            HostTest.end_process(process)

    def resume(self, name, *options, in_allocation=None):
        return subprocess.run([HOST, "resume", name, *options], cwd=self.dir, capture_output=True, text=True,
                              timeout=240, env=self.slurm.environment(**(in_allocation or {})))

    def finish(self, process, status=0):
        """Its output. None stands for any status."""
        out, _ = process.communicate(timeout=240)
        if status is not None:
            self.assertEqual(process.returncode, status, out[-4000:])
        return out

    def jobs(self, *states):
        """(id, name) of the jobs in the queue in these states; none given: those that are not over."""
        lines = self.slurm.run("squeue", "--noheader", "--format=%i %j %T", "--states=all").splitlines()
        rows = [line.split() for line in lines]
        return [(row[0], row[1]) for row in rows if row[2] in (states or ("PENDING", "RUNNING"))]

    def wait_for_jobs(self, count, *states):
        found = []

        def there():
            found[:] = [job for job in self.jobs(*states) if job[1].startswith("dsat-")]
            return len(found) >= count

        mini_slurm.wait_until(there, f"{count} jobs {states}")
        return found

    def trials(self, name):
        return {trial["id"]: trial for trial in self.show(name)["trials"]}

    def assert_all_accounted(self, name, outcome="completed"):
        trials = self.trials(name)
        self.assertEqual({trial["outcome"] for trial in trials.values()}, {outcome}, trials)
        self.assertEqual(sorted(trials), list(range(len(trials))))
        return trials


class Waiting(SlurmTest):
    """Studies whose trials wait for the file `go`."""

    def go(self):
        (self.dir / "go").touch()

    def kill_host(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def wait_for_script(self):
        mini_slurm.wait_until(lambda: list(self.dir.glob("run/trials/*/run_started.json")), "a trial's script runs")

    # The host has asked the queue so often since now, whatever came of it.
    def wait_for_asking(self, times=2):
        seen = self.asked()
        mini_slurm.wait_until(lambda: self.asked() >= seen + times, "the host asks the queue")

    def asked(self):
        return len((self.dir / "asked").read_text()) if (self.dir / "asked").exists() else 0

    def count_asking(self):
        folder = self.dir / "counted"
        folder.mkdir()
        (folder / "squeue").write_text(f'#!/bin/sh\nprintf x >>{self.dir}/asked\nexec {shutil.which("squeue")} "$@"\n')
        (folder / "squeue").chmod(0o755)
        return {"PATH": f"{folder}:{self.slurm.environment()['PATH']}"}
