#!/usr/bin/env python3
"""What the host adds to a trial, and how fast it starts.

    bench/host/host_overhead.py [BUILD_DIR] [--trials N]

Tunes a command that takes no time, one trial at a time, and runs the same command as often without the host, in the
same minutes. Prints wall time a trial for both, their difference, and the median start-up time of dsat-host.
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def wall_ms(arguments, cwd):
    start = time.perf_counter()
    subprocess.run(arguments, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 1e3 * (time.perf_counter() - start)


def study_ms(build, cwd, trials, repetition):
    return wall_ms([build / "dsat-host", "--searcher", "random", "--max-trials", str(trials), "--device-memory",
                    "100GB", "--quiet", "--output-dir", f"study-{trials}-{repetition}", "--",
                    build / "bench/instant_trial", "--deepspeed_config", "ds_config.json"], cwd)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory(dir=build) as folder:
        cwd = pathlib.Path(folder)
        (cwd / "ds_config.json").write_text('{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}')
        short, long, bare, starts = [], [], [], []
        for repetition in range(5):
            # The difference of a long and a short study leaves start-up and end out of the time a trial takes.
            short.append(study_ms(build, cwd, 5, repetition))
            long.append(study_ms(build, cwd, 5 + options.trials, repetition))
            config = next(cwd.glob("study-*/trials/4/ds_config.json"))
            bare += [wall_ms([build / "bench/instant_trial", "--deepspeed_config", config], cwd) for _ in range(20)]
            starts += [wall_ms([build / "dsat-host", "--version"], cwd) for _ in range(20)]
    per_trial = statistics.median((b - a) / options.trials for a, b in zip(short, long))
    command = statistics.median(bare)
    linked = subprocess.run(["ldd", build / "dsat-host"], capture_output=True, text=True, check=True).stdout
    print(f"a trial under the host, process start included   {per_trial:7.2f} ms")
    print(f"the same command alone                           {command:7.2f} ms")
    print(f"the host's share                                 {per_trial - command:7.2f} ms   (goal: under 20)")
    print(f"dsat-host --version, median of {len(starts)}               {statistics.median(starts):7.2f} ms   "
          "(goal: under 50)")
    print(f"dsat-host links LibTorch                         {'yes' if 'torch' in linked else 'no':>7}      (goal: no)")


if __name__ == "__main__":
    main()
