#!/usr/bin/env python3
"""What the memory probe adds to a script's run.

    bench/host/probe_overhead.py [BUILD_DIR] [--python PYTHON] [--starts N] [--short N] [--long N]

Runs the same script with and without the hook, by turns, so that a busy machine is as busy for both: an empty script,
one that imports torch (if PYTHON has it), and loops of about 2 and 60 seconds that import torch. The long ones sleep
nearly all the time, so several pairs run at once. Prints for each the median of both, the median of the differences
within a pair, and its 95 % interval by resampling the pairs. Processor time is that of the process and its children:
other work on the machine does not count.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMPORT = "try:\n    import torch\nexcept ImportError:\n    pass\n"
# Sleeps of 5 ms: a busy machine stretches them little.
LOOP = IMPORT + "import time\nfor _ in range(%d):\n    sum(range(1000)); time.sleep(%g)\n"


def run(python, script, variables):
    """Wall and processor milliseconds."""
    start = time.perf_counter()
    child = subprocess.Popen([python, "-c", script], env=variables, stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{script!r} ended with status {child.returncode}")
    return 1e3 * (time.perf_counter() - start), 1e3 * (used.ru_utime + used.ru_stime)


def interval(values, draws=2000):
    """Of the median, by the bootstrap."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def compare(name, python, script, pairs, with_hook, without, at_once=1):
    if pairs == 0:
        return

    def pair(number):
        first = number % 2 == 0  # each is the first of its pair in half of them
        results = {hook: run(python, script, with_hook if hook else without) for hook in (first, not first)}
        return results[True], results[False]

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        runs = list(pool.map(pair, range(pairs)))
    for kind, at in (("wall", 0), ("cpu", 1)):
        difference = [hooked[at] - bare[at] for hooked, bare in runs]
        low, high = interval(difference)
        print(f"{name:<14} {kind:<5} {pairs:>5} {statistics.median(r[0][at] for r in runs):>10.2f} "
              f"{statistics.median(r[1][at] for r in runs):>10.2f} {statistics.median(difference):>+9.2f}   "
              f"{low:+.2f} to {high:+.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--python", default="/usr/bin/python3", help="the one that has torch")
    parser.add_argument("--starts", type=int, default=200, help="pairs of the empty script")
    parser.add_argument("--short", type=int, default=20, help="pairs of import and of 2 seconds")
    parser.add_argument("--long", type=int, default=12, help="pairs of 60 seconds")
    options = parser.parse_args()
    hook = options.build.resolve() / "probe"
    if not (hook / "sitecustomize.py").exists():
        parser.error(f"{hook} has no sitecustomize.py: build dsat-host first")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "probe").mkdir()
        without = {**os.environ, "DSAT_TRIAL_DIR": folder, "RANK": "0", "LOCAL_RANK": "0"}
        users = without.get("PYTHONPATH")
        with_hook = {**without, "PYTHONPATH": f"{hook}:{users}" if users else str(hook)}
        print(f"{'milliseconds':<14} {'':<5} {'pairs':>5} {'with':>10} {'without':>10} {'median':>9}"
              "   95 % of the difference")
        compare("empty script", options.python, "pass", options.starts, with_hook, without)
        compare("import", options.python, IMPORT, options.short, with_hook, without)
        compare("2 seconds", options.python, LOOP % (380, 0.005), options.short, with_hook, without)
        compare("60 seconds", options.python, LOOP % (1200, 0.05), options.long, with_hook, without,
                at_once=4)
        left = list((pathlib.Path(folder) / "probe").iterdir())
        print("file:", json.loads(left[0].read_text()) if left else "none, since this Python has no torch")


if __name__ == "__main__":
    main()
