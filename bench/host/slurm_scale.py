#!/usr/bin/env python3
"""What a study of ten thousand jobs on a thousand nodes costs the machine that dsat-host runs on.

The real dsat-host runs with --runner slurm; sbatch, squeue and scancel are played by this program, which knows of every
job when it would start and end, and writes what its trial would have written. No Slurm is needed, and no trial runs.
"""
import argparse
import collections
import heapq
import itertools
import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from slurm_bench import run_host  # noqa: E402

METRICS = json.dumps({"fwd": 1000, "bwd": 2000, "step": 1000, "latency": 4000, "throughput": 250, "FLOPS_per_gpu": 1e9,
                      "rank": 0, "num_params": 1000000, "trainable_num_params": 1000000,
                      "activation_mem_per_gpu": 1000000, "world_size": 1})


class Job:
    def __init__(self, number, name, folder):
        self.number, self.name, self.folder = number, name, folder
        self.attempt = int(name.rpartition("a")[2])
        self.enter("PENDING", "Resources")

    def enter(self, state, reason="None"):
        self.state = state
        self.line = f"{self.number}|{state}|{reason}|0|0|{'' if state == 'PENDING' else 'n1'}|{self.name}|\n"

    def write(self, name, text):
        part = self.folder / (name + ".part")
        part.write_text(text)
        part.rename(self.folder / name)

    def note(self, name, more=""):
        self.write(name, f'{{"attempt": {self.attempt}, "job": "{self.number}", "step": "", "host": "n1", "pid": 1, '
                         f'"time": "{time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}"{more}}}\n')


class Cluster:
    """First come, first served; every job takes one node for the same time.

    Jobs that ended are forgotten as by Slurm.
    """

    def __init__(self, nodes, seconds, min_job_age=300):
        self.free, self.seconds, self.min_job_age = nodes, seconds, min_job_age
        self.jobs, self.queue, self.running, self.ended = {}, collections.deque(), [], collections.deque()
        self.ids = itertools.count(1)
        self.asked = collections.Counter()
        self.answered_bytes, self.longest_queue = 0, 0

    def advance(self):
        now = time.monotonic()
        while self.running and self.running[0][0] <= now:
            job = heapq.heappop(self.running)[2]
            self.free += 1
            self.ended.append((now, job))
            if job.state == "RUNNING":
                job.write("model_info.json", METRICS)
                job.write("metrics.json", METRICS)
                job.note("run_ended.json", ', "exit_status": 0, "signalled": false')
                job.enter("COMPLETED")
        while self.queue and self.free:
            job = self.queue.popleft()
            if job.state != "PENDING":
                continue
            self.free -= 1
            heapq.heappush(self.running, (now + self.seconds, job.number, job))
            job.enter("RUNNING")
            job.note("run_started.json")
        while self.ended and self.ended[0][0] + self.min_job_age < now:
            self.jobs.pop(self.ended.popleft()[1].number, None)
        self.longest_queue = max(self.longest_queue, len(self.queue) + len(self.running))

    def answer(self, argv):
        command = os.path.basename(argv[0])
        self.asked[command] += 1
        if command == "squeue":
            text = "".join(job.line for job in self.jobs.values())
            self.answered_bytes += len(text)
            return text
        if command == "sbatch" and "--test-only" not in argv:
            name = next(word for word in argv if word.startswith("--job-name="))[len("--job-name="):]
            job = Job(next(self.ids), name, Path(argv[-1]).parent)
            self.jobs[job.number] = job
            self.queue.append(job)
            return f"{job.number}\n"
        if command == "scancel":
            for word in argv[1:]:
                if word.isdigit() and self.jobs[int(word)].state in ("PENDING", "RUNNING"):
                    self.jobs[int(word)].enter("CANCELLED")
        return ""


def serve(cluster, listener, stop):
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    received = {}
    while not stop.is_set():
        for key, _ in selector.select(0.02):
            if key.fileobj is listener:
                client, _ = listener.accept()
                received[client] = b""
                selector.register(client, selectors.EVENT_READ)
                continue
            client, data = key.fileobj, key.fileobj.recv(65536)
            received[client] += data
            if not data:
                selector.unregister(client)
                words = received.pop(client).decode().split("\0")[:-1]
                try:
                    client.sendall(b"\0" + cluster.answer(words).encode())
                except OSError:
                    pass  # it was killed
                client.close()
        cluster.advance()


def prepare(folder, options):
    client = folder / "client"
    subprocess.run(["cc", "-O1", "-o", client, Path(__file__).with_name("fake_slurm.c")], check=True)
    (folder / "bin").mkdir()
    for name in ("sbatch", "squeue", "scancel", "scontrol"):
        (folder / "bin" / name).symlink_to(client)
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}
    (folder / "ds.json").write_text(json.dumps(config))
    axes = ("reduce_bucket_size", "allgather_bucket_size")
    space = {f"zero_optimization.{axis}": [1000000 + i for i in range(options.jobs // 20 + 20)] for axis in axes}
    (folder / "space.json").write_text(json.dumps(space))
    environment = {k: v for k, v in os.environ.items() if not re.match("SLURM_|SBATCH_|SQUEUE_", k)}
    environment.update(PATH=f"{folder}/bin:{os.environ['PATH']}", FAKE_SLURM=f"{folder}/socket")
    words = [options.build / "dsat-host", "--output-dir", "run", "--searcher", "random", "--space", "space.json",
             "--runner", "slurm", "--slots-per-trial", "1", "--no-baseline", "--finals", "0", "--no-probe", "--quiet",
             "--max-trials", options.jobs, "--max-concurrent-trials", options.width or options.nodes,
             "--", "sh", "trial.sh", "--deepspeed_config", "ds.json"]
    (folder / "trial.sh").write_text("exit 1\n")
    return [str(word) for word in words], environment


def report(cluster, trials, wall, own, children, peak):
    completed = sum(trial["outcome"] == "completed" for trial in trials)
    polls = cluster.asked["squeue"]
    print(f"{len(trials)} trials, {completed} completed, in {wall:.0f} s; "
          f"at most {cluster.longest_queue} jobs in the queue")
    print(f"dsat-host: {own:.1f} s of processor time, {1000 * own / len(trials):.1f} ms a job, "
          f"{100 * own / wall:.0f} % of one processor; memory {peak / 1024:.0f} MiB")
    print(f"its Slurm commands (played, they cost next to nothing): {children:.1f} s; "
          f"sbatch {cluster.asked['sbatch']}, scancel {cluster.asked['scancel']}")
    print(f"squeue: {polls} times, {polls / wall:.2f} a second, "
          f"{cluster.answered_bytes / max(1, polls) / 1024:.0f} KiB each")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="folder with dsat-host and its plugins: build/release")
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--width", type=int, help="jobs waiting or running at once; default: as many as nodes")
    parser.add_argument("--seconds", type=float, default=30, help="that every job runs (default 30)")
    options = parser.parse_args()
    options.build = options.build.resolve()
    folder = Path(tempfile.mkdtemp(prefix="slurm-scale-"))
    cluster = Cluster(options.nodes, options.seconds)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/socket")
    listener.listen(1024)
    stop = threading.Event()
    threading.Thread(target=serve, args=(cluster, listener, stop), daemon=True).start()
    try:
        argv, environment = prepare(folder, options)
        wall, own, children, peak = run_host(argv, folder, environment)
        shown = subprocess.run([argv[0], "show", "run", "--json"],
                               cwd=folder, capture_output=True, text=True, check=True)
        report(cluster, json.loads(shown.stdout)["trials"], wall, own, children, peak)
    finally:
        stop.set()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
