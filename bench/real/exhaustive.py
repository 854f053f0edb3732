#!/usr/bin/env python3
"""What dsat hands back on a real DeepSpeed, against a measurement of every configuration of a small space.

    bench/real/exhaustive.py BUILD --deepspeed FOLDER --job gpt|conv --ranks N --limit BYTES [--trials N] [--out DIR]
                             [--clock wall|cpu] [--rounds N] [--other NAME=CONFIG.json] [--only PART]
                             [--config FILE] [--bucket N]... [--micro-batch N]... [--script-options WORDS]

FOLDER is where `import deepspeed` finds it; run this with a Python that has torch. LIMIT is the data limit of a rank,
which stands for the device's memory; without one it is a GPU's own. Three parts, each leaving its file in DIR:
  grid     ZeRO stages 0 to 3 x bucket sizes x micro batches, up to a little beyond the largest that fits
  dsat     a study with the default searcher below the limit, real launchers and all
  finals   the grid's best that fit the limit, what dsat handed back, the user's own and others: in rounds, in another
           order each time, so that the noise of a busy machine hits all alike. The regret is of the finals alone
Speeds are samples a second of wall time, and of the slowest rank's processor time: what other work on the machine takes
away is not in the latter. With --clock cpu the study's trials are timed so as well. Each is the median step; "fast" is
the fastest tenth of the steps by processor time.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import shlex
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUCKETS = (1_000_000, 10_000_000)
MICRO_BATCHES = (8, 16, 32, 64, 128, 256)
FINALISTS = 4
BEYOND = 1.08  # forked ranks need that much more memory than fresh ones, at most


def configuration(own, stage, bucket, micro_batch):
    zero = {"stage": stage, "reduce_bucket_size": bucket} if stage else {"stage": 0}
    return {**own, "train_micro_batch_size_per_gpu": micro_batch, "zero_optimization": zero}


def label(config):
    zero = dict(config.get("zero_optimization", {}))
    rest = "".join(f" {key}={value}" for key, value in sorted(zero.items()) if key != "stage")
    return f"stage {zero.get('stage', 0)} micro batch {config['train_micro_batch_size_per_gpu']}{rest}"


class Bench:
    def __init__(self, options):
        import ranks  # forks from here on: torch and deepspeed are imported once
        self.ranks, self.options = ranks, options
        self.script = [str(HERE / f"{options.job}.py"), *shlex.split(options.script_options)]
        self.own = json.loads(options.config.read_text())
        self.folder = options.out
        self.folder.mkdir(parents=True, exist_ok=True)

    def measure(self, config, **options):
        return self.ranks.measure(self.script, config, self.options.ranks, **options)

    def fits(self, rows, arm, micro_batch):
        config = configuration(self.own, *arm, micro_batch)
        limit = self.options.limit
        result = self.measure(config, limit_bytes=limit and int(BEYOND * limit))
        rows.append({"config": config, **result})
        done = result["outcome"] == "completed"
        print(f"{label(config):<60} {result['outcome']:<14} "
              + (f"{speed([result], 'wall'):8.1f}/s {speed([result], 'cpu'):8.1f}/cpu s" if done else
                 result["words"].split(chr(10))[-1][:60]), flush=True)
        return done

    def grid(self):
        """Every arm: micro batches upwards to the first that does not fit, then the largest that does by halving."""
        rows, start = [], time.monotonic()
        for arm in [(0, 0)] + [(stage, bucket) for stage in (1, 2, 3) for bucket in self.options.bucket or BUCKETS]:
            fitted, failed = 0, None
            for micro_batch in self.options.micro_batch or MICRO_BATCHES:
                if not self.fits(rows, arm, micro_batch):
                    failed = micro_batch
                    break
                fitted = micro_batch
            while failed and failed - fitted > max(1, fitted // 8):
                middle = (fitted + failed) // 2
                fitted, failed = (middle, failed) if self.fits(rows, arm, middle) else (fitted, middle)
        self.save("grid", {"rows": rows, "seconds": time.monotonic() - start})

    def dsat(self):
        options, study = self.options, self.folder / "study"
        # A script without a launcher gets what one would tell it: DeepSpeed asks MPI otherwise.
        alone = ["env", "RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=localhost", sys.executable]
        os.environ["LOCAL_SIZE"] = str(options.ranks)  # else the launcher takes as many ranks as there are NUMA nodes
        run = alone if options.ranks == 1 else ["deepspeed", "--num_gpus", str(options.ranks)]
        command = [str(options.build.resolve() / "dsat-host"), "--max-trials", str(options.trials), "--metric",
                   "throughput", "--slots", str(options.ranks), "--output-dir", str(study), "--verbose", "--",
                   *run, *self.script, "--deepspeed", "--deepspeed_config", str(options.config)]
        limit = options.limit or resource.RLIM_INFINITY
        start = time.monotonic()
        with open(self.folder / "dsat.log", "w") as log:
            status = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=lambda:
                                    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))).returncode
        print((self.folder / "dsat.log").read_text())
        self.save("dsat", {"status": status, "seconds": time.monotonic() - start,
                           "config": json.loads((study / "best_ds_config.json").read_text())})

    def grids_best(self):
        """The fastest by either clock, of those that fit the limit in processes of their own."""
        rows = json.loads((self.folder / "grid.json").read_text())["rows"]
        done, chosen, asked = [row for row in rows if row["outcome"] == "completed"], {}, {}
        for clock in ("cpu", "wall"):
            left = FINALISTS
            for row in sorted(done, key=lambda row: -speed([row], clock)):
                name = "grid: " + label(row["config"])
                if name not in asked:
                    asked[name] = self.fits_when_fresh(row["config"])
                if asked[name]:
                    chosen[name] = row["config"]
                    left -= 1
                if left == 0:
                    break
        print("do not fit:", ", ".join(name for name, fits in asked.items() if not fits) or "none", flush=True)
        return chosen

    def fits_when_fresh(self, config):
        """A forked rank's larger heap counts against a data limit; a GPU's memory holds no heap."""
        limit = self.options.limit
        if limit is None:
            return True
        return self.measure(config, limit_bytes=limit, steps=8, fresh=True)["outcome"] == "completed"

    def finals(self):
        contenders = {**self.grids_best(), "own": self.own}
        if (self.folder / "dsat.json").exists():
            contenders["dsat"] = json.loads((self.folder / "dsat.json").read_text())["config"]
        for other in self.options.other:
            name, _, path = other.partition("=")
            contenders[name] = json.loads(pathlib.Path(path).read_text())
        runs, order = {name: [] for name in contenders}, random.Random(1)
        for _ in range(self.options.rounds):
            for name in order.sample(list(contenders), len(contenders)):
                runs[name].append(self.measure(contenders[name], steps=8))
            self.save("finals", {"contenders": contenders, "runs": runs})
        self.report(contenders, runs)

    def report(self, contenders, runs):
        print(f"{'samples a second':<64} {'wall':>8} {'+-%':>5} {'cpu':>8} {'+-%':>5} {'fast':>8}")
        for name, of_name in runs.items():
            cells = []
            for clock in ("wall", "cpu"):
                middle, rounds = speed(of_name, clock), [speed([run], clock) for run in of_name]
                cells.append(f"{middle:8.1f} {100 * statistics.pstdev(rounds) / middle:5.1f}")
            print(f"{name:<64} {' '.join(cells)} {speed(of_name, 'cpu', 0.1):8.1f}")
        for name in contenders:
            if not name.startswith("grid"):
                print(f"{name} ({label(contenders[name])}): regret by wall {regret(runs, name, 'wall')}; by processor "
                      f"time {regret(runs, name, 'cpu')}; by its fastest tenth {regret(runs, name, 'cpu', 0.1)}")

    def save(self, name, value):
        (self.folder / f"{name}.json").write_text(json.dumps(value, indent=1))
        if name != "finals":
            print(f"{name}: {value['seconds']:.0f} s", flush=True)


def speed(runs, clock, quantile=0.5):
    """Samples a second of the step at this place among all steps of the runs, the fastest first."""
    steps = sorted(step for run in runs for step in run[clock])
    return runs[0]["samples"] / steps[int(quantile * (len(steps) - 1))]


def regret(runs, name, clock, quantile=0.5):
    """Against the best of the grid, in percent, with its 95 % interval by resampling the rounds."""
    best = max((other for other in runs if other.startswith("grid")),
               key=lambda other: speed(runs[other], clock, quantile))
    draw = random.Random(1)

    def percent(theirs, ours):
        return 100 * (1 - speed(ours, clock, quantile) / speed(theirs, clock, quantile))

    resampled = sorted(percent(draw.choices(runs[best], k=len(runs[best])), draw.choices(runs[name], k=len(runs[name])))
                       for _ in range(1000))
    return f"{percent(runs[best], runs[name]):.1f} % ({resampled[25]:.1f} to {resampled[974]:.1f}) of {best[6:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--deepspeed", type=pathlib.Path, help="the folder with the package; without: as installed")
    parser.add_argument("--job", choices=("gpt", "conv"), required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--limit", type=lambda text: int(float(text)), help="bytes of a rank")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="of DeepSpeed's timers in the study")
    parser.add_argument("--trials", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--config", type=pathlib.Path, default=HERE / "ds_config.json", help="the user's own")
    parser.add_argument("--bucket", type=int, action="append", help="of the grid, in elements")
    parser.add_argument("--micro-batch", type=int, action="append", help="of the grid, upwards")
    parser.add_argument("--script-options", default="", metavar="WORDS", help="for the job's script")
    parser.add_argument("--other", action="append", default=[], metavar="NAME=CONFIG")
    parser.add_argument("--only", choices=("grid", "dsat", "finals"), action="append")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    options.out = (options.out or pathlib.Path(f"real-{options.job}-{options.ranks}")).resolve()
    # A rank is one core's.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", DSAT_BENCH_CLOCK=options.clock)
    if options.deepspeed:
        sys.path.insert(0, str(options.deepspeed.resolve()))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))
    sys.path.insert(0, str(HERE))
    bench = Bench(options)
    for part in options.only or ("grid", "dsat", "finals"):
        getattr(bench, part)()


if __name__ == "__main__":
    main()
