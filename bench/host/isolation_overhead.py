#!/usr/bin/env python3
"""What a call costs more when its searcher runs in a process of its own.

    python3 bench/host/isolation_overhead.py BUILD_DIR [--trials N]

Runs the same simulated study with each searcher in dsat-host's process and isolated, several times by turns, and
divides the difference of the median times by the number of the study's calls (two a trial: result and exit). The cost
of starting the processes is measured by studies of few trials and taken off.
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

SCENARIO = pathlib.Path(__file__).resolve().parents[2] / "examples/sim/8-gpus-a100-gpt2-xl.json"
FEW = 20


def seconds(build, searcher, way, trials):
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run([build / "dsat-host", "--runner", "sim", "--sim", SCENARIO, "--searcher", searcher, way, "--quiet",
                        "--max-trials", str(trials)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--searchers", nargs="+", default=["random", "asha"])
    given = parser.parse_args()
    build = given.build.resolve()
    for searcher in given.searchers:
        times = {}
        for _ in range(given.rounds):
            for way in ("--in-process", "--isolate"):
                for trials in (FEW, given.trials):
                    times.setdefault((way, trials), []).append(seconds(build, searcher, way, trials))
        at = {key: statistics.median(values) for key, values in times.items()}
        growth = {way: at[way, given.trials] - at[way, FEW] for way in ("--in-process", "--isolate")}
        calls = 2 * (given.trials - FEW)
        added_us = (growth["--isolate"] - growth["--in-process"]) / calls * 1e6
        print(f"{searcher:8} {calls} calls: in process {growth['--in-process'] / calls * 1e6:.1f} us a call, "
              f"isolated {growth['--isolate'] / calls * 1e6:.1f} us: {added_us:.1f} us more", flush=True)


if __name__ == "__main__":
    main()
