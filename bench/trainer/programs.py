"""Runs the programs that are compared: dsat-trial and the same model in Python."""
import itertools
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch is for
WARM_UP = 5  # steps: caches fill, memory is taken for the first time

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
# What dsat-trial tells glibc by itself: memory that was freed is kept for the next step.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**62)}


class Failed(Exception):
    pass


def environment(**more):
    return {**os.environ, **ONE_THREAD, **KEEP_MEMORY, **more}


def output_of(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def output_of_ranks(command, ranks):
    """What rank 0 prints, the ranks being started one by one, as on several hosts."""
    group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    others = [
        subprocess.Popen(command, env=environment(RANK=str(rank), **group), stdout=subprocess.DEVNULL)
        for rank in range(1, ranks)
    ]
    try:
        return output_of(command, environment(RANK="0", **group))
    finally:
        for other in others:
            other.wait()


def median_step_ms(text):
    return statistics.median([float(ms) for ms in re.findall(r" (\S+) ms$", text, re.M)][WARM_UP:])


class DsatTrial:
    def __init__(self, build):
        self.program = str(pathlib.Path(build) / "dsat-trial")
        if not os.access(self.program, os.X_OK):
            sys.exit(f"{self.program} is not there: build it first (ninja -C {build} dsat-trial), or name --build")
        self.folder = tempfile.TemporaryDirectory(prefix="dsat-bench-")
        self.runs = itertools.count()  # each has files of its own: several may run at a time

    def _run(self, options, config):
        file = os.path.join(self.folder.name, f"ds_config_{next(self.runs)}.json")
        with open(file, "w") as stream:
            json.dump(config, stream)
        command = [self.program, *options.split(), "--deepspeed_config", file]
        return output_of(command, environment())

    def step_ms(self, options, config):
        """The median wall time of a step, from its batch to its update."""
        text = self._run(options, config)
        return median_step_ms(text)

    def step_ms_apart(self, options, config, ranks, prefix):
        """The same where nothing but the network joins the ranks; `prefix` places each of them."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            command = [*prefix, self.program, *options.split(), "--deepspeed_config", file.name]
            return median_step_ms(output_of_ranks(command, ranks))

    def measure(self, options, config, steps=3):
        """The metrics of a tuning trial."""
        metrics = os.path.join(self.folder.name, f"metrics_{next(self.runs)}.json")
        tuning = {"enabled": True, "metric_path": metrics, "start_profile_step": 1, "end_profile_step": steps - 1}
        self._run(options, {**config, "autotuning": tuning})
        with open(metrics) as file:
            return json.load(file)

    def information(self, options, config):
        """What a model-information trial tells, before anything is trained."""
        path = os.path.join(self.folder.name, f"model_info_{next(self.runs)}.json")
        tuning = {"enabled": True, "model_info_path": path, "model_info": {"profile": True}}
        self._run(options, {**config, "autotuning": tuning})
        with open(path) as file:
            return json.load(file)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def python_step_ms(options, ranks=1):
    """The median wall time of a step of gpt.py on rank 0."""
    result = json.loads(output_of_ranks([PYTHON, str(HERE / "gpt.py"), *options.split()], ranks))
    return statistics.median(result["step_ms"][WARM_UP:])


def zero(stage, **section):
    return {"stage": stage, **section}
