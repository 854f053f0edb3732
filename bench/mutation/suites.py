"""Which tests have to notice a change below a folder, the nearest first, and how they are run."""
import os
import signal
import subprocess
import sys
import time

# Folder: test programs in the order in which they are asked; the first folder that matches counts.
PROGRAMS = [
    ("sdk/base/", ["base_test", "config_test", "cli_kit_test", "host_test"]),
    ("sdk/config/", ["config_test", "host_test", "cli_test"]),
    ("sdk/cost/", ["cost_test", "plugins_test", "loaded_plugins_test"]),
    ("sdk/cli/", ["cli_kit_test", "cli_test"]),
    ("sdk/", ["sdk_test", "loaded_plugins_test", "host_test"]),
    ("host/cli/", ["cli_test"]),
    ("host/", ["host_test", "cli_test"]),
    ("plugins/", ["plugins_test", "loaded_plugins_test"]),
    ("trainer/", ["trainer_parts_test", "trainer_torch_test", "device_test", "trial_program_test", "peers_test"]),
]
# What the end-to-end tests need, and those that see a change below a folder. They run only where all programs passed.
E2E_TARGETS = ["dsat-host", "dsat-launch", "asha", "binary", "grid", "guided", "random", "profiler"]
E2E = [
    ("sdk/cost/", ["cli", "search"]),
    ("sdk/", ["cli", "bad_input", "search"]),
    ("host/src/sim/", ["simulation"]),
    ("host/cli/determined/", ["experiment_form", "determined_defects"]),
    ("host/cli/deepspeed/", ["deepspeed_form"]),
    ("host/cli/", ["cli", "help", "bad_input", "interruption", "deepspeed_form", "experiment_form"]),
    ("host/src/command/", ["launchers", "hugging_face", "experiment_form", "resources"]),
    ("host/src/slots/", ["resources", "launchers"]),
    ("host/src/runner/", ["trial_failures", "probe", "metric_keys", "ceilings", "interruption"]),
    ("host/launcher/", ["trial_failures", "interruption"]),
    ("host/probe/", ["probe", "probe_hook"]),
    ("host/", ["search", "interruption", "simulation", "ceilings", "defects"]),
    ("plugins/", ["search", "ceilings", "simulation"]),
    ("trainer/", ["main_job", "trial_api", "pipeline", "trial_pipeline", "torchscript"]),
]


def suites_of(path, table):
    return next((suites for folder, suites in table if path.startswith(folder)), [])


def run_limited(command, limit_s, log, **options):
    """The exit status, or None where it took too long; nothing of it is left running."""
    with open(log, "ab") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


class Suites:
    """The programs and end-to-end tests of one build folder, with a limit of time that follows from a first run."""

    def __init__(self, source, build, log, jobs):
        self.source, self.build, self.log, self.jobs = source, build, log, jobs
        self.usual_s = {}

    def make(self, targets):
        command = ["cmake", "--build", str(self.build), "--parallel", str(self.jobs), "--target", *targets]
        return run_limited(command, 1800, self.log)

    def programs(self, path):
        return [name for name in suites_of(path, PROGRAMS) if name in self.known_targets()]

    def known_targets(self):
        if not hasattr(self, "_targets"):
            listed = subprocess.run(["ninja", "-C", str(self.build), "-t", "targets", "all"], capture_output=True, text=True)
            self._targets = {line.split(":")[0] for line in listed.stdout.splitlines()}
        return self._targets

    def run(self, suite):
        """True: passed. False: it noticed. None: it hung, which a person would notice too."""
        begun = time.monotonic()
        if suite.startswith("e2e."):
            environment = dict(os.environ, DSAT_BUILD_DIR=str(self.build), PYTHONDONTWRITEBYTECODE="1")
            command = [sys.executable, "-m", "unittest", "-f", f"test_{suite[4:]}"]
            status = run_limited(command, self.limit(suite), self.log, cwd=self.source / "tests/e2e", env=environment)
        else:
            # Runs one case after the other: shards would each start what the suite sets up.
            command = [str(self.build / "tests" / suite), "--gtest_fail_fast", "--gtest_brief=1"]
            status = run_limited(command, self.limit(suite), self.log, cwd=self.build)
        if status == 0:
            self.usual_s.setdefault(suite, time.monotonic() - begun)
        return None if status is None else status == 0

    def limit(self, suite):
        return 60 + 4 * self.usual_s.get(suite, 300)
