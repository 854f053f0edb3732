"""Measures configurations of an unmodified DeepSpeed script, in forked ranks of this process or in fresh ones.

torch and deepspeed are imported once, here, and a measurement forks its ranks from that state: it costs no import. Such
a rank's heap is its parent's and some 5 % larger than that of a process of its own, so whether a configuration fits is
asked of fresh ranks. A data limit (RLIMIT_DATA) stands for the device's memory; a GPU has its own. A rank times the
ends of the engine's steps, by the wall clock and by its own processor time.
"""
import json
import os
import pathlib
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest.mock

import torch

# DeepSpeed asks the device for its compute capability when it is imported, and a process that has used CUDA cannot
# fork ranks that use it.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
with unittest.mock.patch("torch.cuda.get_device_properties", return_value=types.SimpleNamespace(major=8, minor=0)):
    import deepspeed

SHORTAGES = ("CUDA out of memory", "you tried to allocate", "MemoryError", "Cannot allocate memory", "std::bad_alloc",
             "could not create")


def remove_buffers(port):
    """Each of DeepSpeed's ranks on processors leaves 69 MB in shared memory (below dsat-launch none does)."""
    for file in pathlib.Path("/dev/shm").glob(f"deepspeed_allreduce_buffer_{os.getuid()}_*_{port}_*"):
        file.unlink(missing_ok=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_rank(script, config_file, rank, ranks, port, steps, limit_bytes):
    """Runs the script (its path and arguments) as its launcher would, until the engine has made so many steps."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_SIZE=str(ranks),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if limit_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    ends, step_of_engine = [], deepspeed.runtime.engine.DeepSpeedEngine.step

    def step(engine, *arguments, **options):
        step_of_engine(engine, *arguments, **options)
        if engine.device.type == "cuda":
            torch.cuda.synchronize()
        ends.append((time.perf_counter(), time.process_time()))
        if len(ends) == steps:
            raise SystemExit

    deepspeed.runtime.engine.DeepSpeedEngine.step = step
    sys.argv = [*script, f"--local_rank={rank}", "--deepspeed", "--deepspeed_config", config_file]
    sys.path.insert(0, os.path.dirname(script[0]))
    try:
        runpy.run_path(script[0], run_name="__main__")
    except SystemExit:
        pass
    return ends


def fork_rank(log, *arguments):
    """The rank's process, and the pipe that its result comes through."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.close(reading)
    code = 1
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.write(writing, json.dumps(run_rank(*arguments)).encode())
        code = 0
    except BaseException as error:  # the child must not go on as its parent
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def start_rank(log, *arguments):
    """As fork_rank, in a Python of its own."""
    reading, writing = os.pipe()
    child = subprocess.Popen([sys.executable, __file__, str(writing), json.dumps(arguments)], pass_fds=[writing],
                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.close(writing)
    return child.pid, reading


def read_all(descriptor):
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def collect(children, timeout):
    """Each rank's step ends; None where one of them ended without or the time was up."""
    results, deadline = {}, time.monotonic() + timeout
    waiting = {reading: rank for rank, (_, reading) in enumerate(children)}
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], max(0, deadline - time.monotonic()))
        for reading in ready:
            text = read_all(reading)
            results[waiting.pop(reading)] = json.loads(text) if text else None
        if not ready or any(result is None for result in results.values()):
            break
    failed = len(results) < len(children) or any(result is None for result in results.values())
    for child, reading in children:
        if failed:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
    return None if failed else [results[rank] for rank in range(len(children))]


def measure(script, config, ranks, limit_bytes=None, steps=6, fresh=False, timeout=600):
    """{"outcome", "wall": [seconds of each step], "cpu": [the same in processor time], ...} of one run.

    Steps from the third on. By processor time the slowest rank counts: its work is what the others wait for.
    """
    accumulation = config.get("gradient_accumulation_steps", 1)
    with tempfile.TemporaryFile() as log, tempfile.NamedTemporaryFile("w", suffix=".json") as config_file:
        json.dump(config, config_file)
        config_file.flush()
        port, begin = free_port(), start_rank if fresh else fork_rank
        children = [begin(log.fileno(), script, config_file.name, rank, ranks, port, steps * accumulation, limit_bytes)
                    for rank in range(ranks)]
        results = collect(children, timeout)
        remove_buffers(port)
        log.seek(0)
        output = log.read().decode(errors="replace")
    if results is None:
        short = any(text in output for text in SHORTAGES)
        return {"outcome": "out_of_memory" if short else "failed", "words": output.strip()[-300:]}

    def times(ends, clock):
        at = [end[clock] for end in ends][accumulation - 1::accumulation]
        return [b - a for a, b in zip(at[1:], at[2:])]

    by_rank = [times(ends, 1) for ends in results]
    return {"outcome": "completed", "wall": times(results[0], 0), "cpu": [max(step) for step in zip(*by_rank)],
            "samples": ranks * config["train_micro_batch_size_per_gpu"] * accumulation}


torch.set_num_threads(1)
if __name__ == "__main__":
    os.write(int(sys.argv[1]), json.dumps(run_rank(*json.loads(sys.argv[2]))).encode())
    os._exit(0)
