"""Which tests have to notice a change below a folder, the nearest first, and how they are run."""
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import threading
import time

# Beginning of a path: test programs in the order in which they are asked; the first entry that matches counts.
PROGRAMS = [
    ("sdk/base/",
     ["base_test", "config_test", "cli_kit_test", "yaml_test", "cost_test", "host_test", "cli_test", "rescue_test"]),
    ("sdk/config/", ["config_test", "plugins_test", "host_test", "cli_test"]),
    ("sdk/cost/", ["cost_test", "plugins_test", "loaded_plugins_test", "host_test"]),
    ("sdk/cli/", ["cli_kit_test", "cli_test"]),
    ("sdk/yaml/", ["yaml_test", "cli_test", "host_test"]),
    ("sdk/", ["sdk_test", "loaded_plugins_test", "plugins_test", "host_test"]),
    ("host/probe/", []),
    ("host/cli/", ["cli_test"]),
    ("host/src/study/rescue/repair", ["rescue_test", "host_test", "cli_test"]),
    ("host/src/record/", ["rescue_test", "host_test", "facts_test", "cli_test"]),
    ("host/src/facts/", ["facts_test", "host_test", "cli_test"]),
    ("host/", ["host_test", "rescue_test", "facts_test", "cli_test"]),
    ("plugins/", ["plugins_test", "loaded_plugins_test", "determined_methods_test"]),
    ("trainer/", ["trainer_parts_test", "trainer_torch_test", "device_test", "trial_program_test", "peers_test"]),
]
# What the end-to-end tests need, and those that see a change below a folder. They run only where all programs passed.
E2E_TARGETS = ["dsat-host", "dsat-launch", "dsat-plugin-host", "asha", "binary", "grid", "guided", "random", "profiler",
               "scripted", "walker", "walker_saving", "defective", "defective_crashing", "dies_when_loaded",
               "first_header",
               # Only in a build with the trainer.
               "dsat-trial", "trial_forks", "points_trial", "chain_trial", "old_trial", "no_entry", "image_trial",
               "image_loop"]
E2E = [
    ("sdk/cost/", ["cli", "search", "simulation"]),
    ("sdk/yaml/", ["experiment_form", "determined_defects", "bad_input"]),
    ("sdk/", ["cli", "bad_input", "search", "help"]),
    ("host/src/sim/", ["simulation"]),
    ("host/src/facts/", ["page", "serve", "export", "views"]),
    ("host/src/slurm/", ["slurm_runners", "slurm_failures", "slurm_pilot_failures", "slurm_bad_input"]),
    ("host/src/prefix/", ["slurm_runners", "slurm_bad_input"]),
    ("host/src/plugin/", ["plugins_apart", "bad_input", "search", "defects"]),
    ("host/src/plugin_host/", ["plugins_apart"]),
    ("host/src/validate/", ["plugins_apart", "bad_input"]),
    ("host/src/record/", ["crash_proof", "interruption", "defects"]),
    ("host/cli/determined/", ["experiment_form", "determined_defects", "determined_scripts"]),
    ("host/cli/deepspeed/", ["deepspeed_form", "hugging_face"]),
    ("host/cli/export/", ["export"]),
    ("host/cli/page/", ["page", "serve", "views"]),
    ("host/cli/serve/", ["serve"]),
    ("host/cli/terminal/", ["terminal", "cli", "views", "deepspeed_form"]),
    ("host/cli/", ["cli", "help", "bad_input", "interruption", "deepspeed_form", "experiment_form", "export", "views"]),
    ("host/src/command/", ["launchers", "hugging_face", "experiment_form", "resources"]),
    ("host/src/slots/", ["resources", "launchers", "slurm_runners"]),
    ("host/src/outputs/", ["trial_failures", "probe", "metric_keys", "ceilings"]),
    ("host/src/runner/",
     ["trial_failures", "probe", "metric_keys", "ceilings", "interruption", "misbehaving_trials", "slurm_runners"]),
    ("host/launcher/", ["trial_failures", "interruption", "misbehaving_trials"]),
    ("host/probe/", ["probe_hook", "probe"]),
    ("host/",
     ["search", "interruption", "simulation", "ceilings", "defects", "crash_proof", "resources", "deepspeed_form"]),
    ("plugins/", ["search", "ceilings", "simulation"]),
    ("trainer/", ["main_job", "trial_api", "trial_checkpoints", "trial_places", "pipeline", "trial_pipeline",
                  "torchscript"]),
]
# So many parts of a program, and end-to-end tests, run side by side; most of their time they wait.
SIDE_BY_SIDE = 4
# A fault may have its program kill whatever it finds, or take memory without end: tests see no process but their own.
FENCE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child",
         "--mount-proc", "sh", "-c", 'ulimit -v 8000000; "$@"; exit $?', "sh"]
SUITE_OF = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),", re.M)
FAILED_CASE = re.compile(r"^(?:\[  FAILED  \]|FAIL:|ERROR:) (\S+?),?(?: |$)", re.M)


def suites_of(path, table):
    return next((suites for folder, suites in table if path.startswith(folder)), [])


def room_filter(source, path):
    """The gtest filter of the tests that lie where the file lies: tests/host/runner for host/src/runner."""
    folder = source / "tests" / path.replace("/src/", "/").rpartition("/")[0]
    while folder != source / "tests" and not any(folder.glob("*_test.cc")):
        folder = folder.parent
    names = sorted({name for file in folder.glob("*_test.cc") for name in SUITE_OF.findall(file.read_text())})
    return ":".join(f"{name}.*:*/{name}.*" for name in names)


class Limited:
    """Commands that end in time, each a group of processes of which nothing is left running."""

    def __init__(self, log):
        self.log, self.stop, self.lock, self.running = log, False, threading.Lock(), set()

    def run(self, command, limit_s, **options):
        """The exit status, or None where it took too long."""
        with open(self.log, "ab") as out:
            with self.lock:
                if self.stop:
                    return 0
                child = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                         start_new_session=True, **options)
                self.running.add(child.pid)
            try:
                return child.wait(limit_s)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with self.lock:
                    self.running.remove(child.pid)
                    kill_group(child.pid)
                child.wait()

    def run_all(self, commands, limit_s, **options):
        """(position, status) of the first that does not end with 0; the others are ended then. None where all pass."""
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            runs = {pool.submit(self.run, command, limit_s, **options): position
                    for position, command in enumerate(commands)}
            for run in concurrent.futures.as_completed(runs):
                if run.result() != 0:
                    with self.lock:
                        self.stop = True
                        for pid in self.running:
                            kill_group(pid)
                    return runs[run], run.result()
        return None


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Suites:
    """The programs and end-to-end tests of one build folder, with a limit of time that follows from a first run."""

    def __init__(self, source, build, log, jobs):
        self.source, self.build, self.log, self.jobs = source, build, log, jobs
        self.usual_s = {}

    def make(self, targets):
        command = ["cmake", "--build", str(self.build), "--parallel", str(self.jobs), "--target", *targets]
        return Limited(self.log).run(command, 3600)

    def make_for_ends(self):
        return self.make([name for name in E2E_TARGETS if name in self.known_targets()])

    def programs(self, path):
        return [name for name in suites_of(path, PROGRAMS) if name in self.known_targets()]

    def known_targets(self):
        if not hasattr(self, "_targets"):
            listed = subprocess.run(["ninja", "-C", str(self.build), "-t", "targets", "all"],
                                    capture_output=True, text=True)
            self._targets = {line.split(":")[0] for line in listed.stdout.splitlines()}
        return self._targets

    def run_program(self, program, room=None):
        """Runs a test program: the whole, or the cases of a filter. (verdict, what noticed it), None where all pass."""
        usual_s = self.usual_s.get((program, room), 150)
        parts = SIDE_BY_SIDE if usual_s > 4 else 1
        command = [str(self.build / "tests" / program), "--gtest_fail_fast", "--gtest_brief=1"]
        command += [f"--gtest_filter={room}"] if room else []
        commands = [[*FENCE, "env", f"GTEST_TOTAL_SHARDS={parts}", f"GTEST_SHARD_INDEX={part}", *command]
                    for part in range(parts)]
        begun, position = time.monotonic(), self.end_of_log()
        failed = Limited(self.log).run_all(commands, 30 + 4 * usual_s, cwd=self.build)
        if failed is None:
            self.usual_s[program, room] = max(self.usual_s.get((program, room), 0), time.monotonic() - begun)
        return failed and verdict(failed[1], program, self.failed_case(position))

    def run_ends(self, names):
        """End-to-end tests, as run_program runs programs."""
        environment = dict(os.environ, DSAT_BUILD_DIR=str(self.build), PYTHONDONTWRITEBYTECODE="1")
        commands = [[*FENCE, sys.executable, "-m", "unittest", "-f", f"test_{name[4:]}"] for name in names]
        position = self.end_of_log()
        failed = Limited(self.log).run_all(commands, 600, cwd=self.source / "tests/e2e", env=environment)
        return failed and verdict(failed[1], names[failed[0]], self.failed_case(position))

    def end_of_log(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def failed_case(self, position):
        with open(self.log, errors="replace") as log:
            log.seek(position)
            found = FAILED_CASE.search(log.read())
        return found[1] if found else ""


def verdict(status, suite, case):
    return ("hung" if status is None else "noticed"), f"{suite} {case}".strip()
