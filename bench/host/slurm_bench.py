#!/usr/bin/env python3
"""What dsat-host itself costs on a real Slurm of four nodes:
processor time a trial, squeues a second, slot time in use.

Starts a cluster of its own (tests/e2e/mini_slurm.py), which needs root and Debian's slurmctld, slurmd, slurm-client and
munge. All four nodes are this machine: daemons, job steps and dsat-host share its processors.
"""
import argparse
import atexit
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests/e2e"))
import mini_slurm  # noqa: E402

CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}
# A trial that costs next to nothing beside its SECONDS.
TRIAL = """#!/bin/sh
sleep "$1"
cat >"$DSAT_TRIAL_DIR/out" <<END
{"fwd": 1000, "bwd": 2000, "step": 1000, "latency": 4000, "throughput": 250, "FLOPS_per_gpu": 1e9, "rank": 0,
 "num_params": 1000000, "trainable_num_params": 1000000, "activation_mem_per_gpu": 1000000, "world_size": 1}
END
cp "$DSAT_TRIAL_DIR/out" "$DSAT_TRIAL_DIR/model_info.json"
mv "$DSAT_TRIAL_DIR/out" "$DSAT_TRIAL_DIR/metrics.json"
"""
# Counts how often squeue is asked.
COUNTED = """#!/bin/sh
date +%s.%N >>{count}
exec {squeue} "$@"
"""


def options_of(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="folder with dsat-host and its plugins: build/release")
    parser.add_argument("way", choices=("jobs", "pilot", "srun"),
                        help="a job a trial; steps of one allocation; the same steps by srun alone, to compare with")
    parser.add_argument("--trials", type=int, help="default: 200 as jobs, 500 as steps")
    parser.add_argument("--width", type=int, help="trials at once; default: 8 jobs, 16 steps (a multiple of 4)")
    parser.add_argument("--seconds", type=float, help="that a trial sleeps; default: 0.2 as a job, 1 as a step")
    options = parser.parse_args(argv)
    options.build = options.build.resolve()
    if not (options.build / "dsat-host").exists():
        parser.error(f"{options.build} has no dsat-host")
    if mini_slurm.why_not():
        parser.error(mini_slurm.why_not())
    for name, value in zip(("trials", "width", "seconds"), (200, 8, 0.2) if options.way == "jobs" else (500, 16, 1)):
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.way != "jobs" and options.width % 4:
        parser.error("--width: as many trials on each of the four nodes")
    return options


def run_host(argv, folder, environment):
    """Wall time, the host's own processor time, that of the commands it waited for, its largest memory in KiB."""
    begin = time.monotonic()
    with open(folder / "host.txt", "wb") as output:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdout=output, stderr=output)
        atexit.register(process.kill)  # nothing once it has been waited for
        peak = 0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                peak = int(line.split()[1]) if line.startswith("VmHWM") else peak
            time.sleep(0.5)
    wall = time.monotonic() - begin
    # Times stay in /proc until it is waited for: utime, stime, cutime, cstime.
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    own, children = ((int(fields[i]) + int(fields[i + 1])) / os.sysconf("SC_CLK_TCK") for i in (11, 13))
    if process.wait() != 0:
        sys.exit((folder / "host.txt").read_text()[-4000:])
    return wall, own, children, peak


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def allocate(cluster, options):
    cluster.run("salloc", "--no-shell", "-N4", f"--ntasks-per-node={options.width // 4}", "--time=180", "-J", "bench")
    return cluster.run("squeue", "--noheader", "--name=bench", "--format=%i")


def run_srun_alone(cluster, options):
    """As many loops as slots, each of which starts the next step when the one before has ended."""
    job = allocate(cluster, options)
    each = max(1, options.trials // options.width)

    def loop(slot):
        for _ in range(each):
            cluster.run("srun", f"--jobid={job}", "--nodes=1", "--ntasks=1", f"--nodelist=n{slot % 4 + 1}", "--overlap",
                        "--mem=0", "--mpi=none", "sleep", options.seconds)

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.width) as pool:
        list(pool.map(loop, range(options.width)))
    span = time.monotonic() - begin
    print(f"{each * options.width} steps in {span:.1f} s: slots in use by what the steps themselves take: "
          f"{100 * each * options.seconds / span:.1f} %")


def prepare(folder, cluster, options):
    """Words and environment of the study."""
    (folder / "ds.json").write_text(json.dumps(CONFIG))
    (folder / "trial.sh").write_text(TRIAL)
    space = {"zero_optimization.reduce_bucket_size": [1000000 + i for i in range(2000)]}
    (folder / "space.json").write_text(json.dumps(space))
    (folder / "bin").mkdir()
    squeue = folder / "bin" / "squeue"
    squeue.write_text(COUNTED.format(count=folder / "count", squeue=shutil.which("squeue")))
    squeue.chmod(0o755)
    (folder / "count").touch()
    environment = cluster.environment()
    environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
    words = ["--runner", "slurm"]
    if options.way == "pilot":
        environment["SLURM_JOB_ID"] = allocate(cluster, options)
        words = ["--runner", "pilot"]
    return [options.build / "dsat-host", "--output-dir", "run", "--searcher", "random", "--space", "space.json",
            "--slots-per-trial", "1", "--no-baseline", "--finals", "0", "--no-probe", "--quiet", *words,
            "--max-trials", str(options.trials), "--max-concurrent-trials", str(options.width), "--", "sh", "trial.sh",
            str(options.seconds), "--deepspeed_config", "ds.json"], environment


def report(trials, options, wall, own, children, peak, polls):
    ended = [trial for trial in trials if trial["attempt"] > 0]
    names = {trial["outcome"] for trial in ended}
    outcomes = {name: sum(trial["outcome"] == name for trial in ended) for name in names}
    searched = [trial for trial in ended if trial["kind"] == "search"]
    begins = sorted(when(trial["started_at"]) for trial in searched)
    # Until the last one starts: after it there is nothing to fill a slot with.
    span = begins[-1] - begins[0]
    wanted = sum(min(options.seconds, begins[-1] - begin) for begin in begins)
    gaps = [later - earlier for earlier, later in zip(polls, polls[1:])]
    print(f"{len(ended)} trials in {wall:.1f} s, outcomes {outcomes}, ids 0 to {len(ended) - 1}: "
          f"{'each once' if sorted(trial['id'] for trial in ended) == list(range(len(ended))) else 'NOT each once'}")
    print(f"processor time of dsat-host: {1000 * own / len(ended):.1f} ms a trial; "
          f"of the Slurm commands it ran: {1000 * children / len(ended):.1f} ms a trial; memory {peak / 1024:.0f} MiB")
    if polls:
        print(f"squeue: {len(polls)} times, {len(polls) / wall:.2f} a second, at least {min(gaps or [0]):.2f} s apart")
    print(f"slots in use by what the {len(searched)} trials of the search themselves take, until the last one starts: "
          f"{100 * wanted / (span * options.width):.1f} %")


def main():
    options = options_of(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # and not without its cluster
    folder = Path(tempfile.mkdtemp(prefix="slurm-bench-"))
    cluster = mini_slurm.MiniSlurm(folder / "cluster", cpus=max(16, options.width))
    try:
        cluster.start()
        if options.way == "srun":
            return run_srun_alone(cluster, options)
        argv, environment = prepare(folder, cluster, options)
        wall, own, children, peak = run_host([str(word) for word in argv], folder, environment)
        shown = subprocess.run([argv[0], "show", "run", "--json"],
                               cwd=folder, capture_output=True, text=True, check=True)
        polls = [float(line) for line in (folder / "count").read_text().split()]
        report(json.loads(shown.stdout)["trials"], options, wall, own, children, peak, polls)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
