#!/usr/bin/env python3
"""What dsat-host itself costs on a real Slurm of four nodes: its processor time a trial, squeues a second, slot time in use.

    slurm_bench.py BUILD_DIR jobs [TRIALS=200] [IN_FLIGHT=8]
    slurm_bench.py BUILD_DIR pilot [TRIALS=500] [SLOTS=16] [SECONDS=1]

Starts a cluster of its own (tests/e2e/mini_slurm.py), as root. The figures depend on the machine: all nodes are one.
"""
import json
import os
import shutil
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
echo >>{count}
exec {squeue} "$@"
"""


def own_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(host, options, seconds, folder, environment):
    (folder / "ds.json").write_text(json.dumps(CONFIG))
    (folder / "trial.sh").write_text(TRIAL)
    space = {"zero_optimization.reduce_bucket_size": [1000000 + i for i in range(2000)]}
    (folder / "space.json").write_text(json.dumps(space))
    argv = [host, "--output-dir", "run", "--searcher", "random", "--space", "space.json", "--slots-per-trial", "1",
            "--no-baseline", "--finals", "0", "--no-probe", "--quiet", *options, "--", "sh", "trial.sh", str(seconds),
            "--deepspeed_config", "ds.json"]
    begin = time.monotonic()
    process = subprocess.Popen(argv, cwd=folder, env=environment)
    used = 0.0
    while process.poll() is None:
        try:
            used = own_seconds(process.pid)
        except OSError:
            pass
        time.sleep(0.1)
    shown = subprocess.run([host, "show", "run", "--json"], cwd=folder, capture_output=True, text=True, check=True)
    return time.monotonic() - begin, used, json.loads(shown.stdout)["trials"]


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def main():
    build, way = Path(sys.argv[1]).resolve(), sys.argv[2]
    numbers = [float(a) for a in sys.argv[3:]]
    folder = Path(tempfile.mkdtemp(prefix="slurm-bench-"))
    cluster = mini_slurm.MiniSlurm(folder / "cluster", cpus=16)
    cluster.start()
    try:
        bin_dir = folder / "bin"
        bin_dir.mkdir()
        (bin_dir / "squeue").write_text(COUNTED.format(count=folder / "count", squeue=shutil.which("squeue")))
        (bin_dir / "squeue").chmod(0o755)
        (folder / "count").touch()
        environment = cluster.environment()
        environment["PATH"] = f"{bin_dir}:{environment['PATH']}"
        if way == "jobs":
            trials, width, seconds = (numbers + [200, 8][len(numbers):])[:2] + [0.2]
            options = ["--runner", "slurm"]
        else:
            trials, width, seconds = (numbers + [500, 16, 1][len(numbers):])[:3]
            cluster.run("salloc", "--no-shell", "-N4", f"--ntasks-per-node={int(width) // 4}", "--time=60", "-J", "bench")
            environment["SLURM_JOB_ID"] = cluster.run("squeue", "--noheader", "--name=bench", "--format=%i")
            options = []
        options += ["--max-trials", str(int(trials)), "--max-concurrent-trials", str(int(width))]
        wall, used, ended = run(str(build / "dsat-host"), options, seconds, folder, environment)
        run_trials = [t for t in ended if t["attempt"] > 0]
        squeues = len((folder / "count").read_text().splitlines())
        outcomes = {o: sum(t["outcome"] == o for t in run_trials) for o in {t["outcome"] for t in run_trials}}
        searched = [t for t in run_trials if t["kind"] == "search"]
        span = max(when(t["ended_at"]) for t in searched) - min(when(t["started_at"]) for t in searched)
        print(f"{len(run_trials)} trials in {wall:.1f} s, outcomes {outcomes}")
        print(f"processor time of dsat-host: {1000 * used / len(run_trials):.1f} ms a trial")
        print(f"squeue: {squeues} times, {squeues / wall:.2f} a second")
        print(f"slot time that trials wanted and had: {100 * len(searched) * seconds / (span * width):.1f} %")
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
