#!/usr/bin/env python3
"""Which wrong trainings does the guard find?

    bench/guard/faults.py --build build/release [--precision fp32] [--stage 2] [--keep FILE]

bench_faulty trains a small model with the native trainer on two ranks, as a tuning trial. Its own configuration is at
stage 1, twice. Each fault is put into a twin at another stage with smaller buckets, and into a trial at four times the
micro batch. bench_guard judges them with the host's own functions, and beside them sound ones at each stage.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

MICRO_BATCH, RANKS, ACCUMULATION, SMALL_BUCKET = 8, 2, 2, 3000
KINDS = {"trial": "trial", "one run": "twin, one run of the own", "two runs": "twin, two runs of the own"}


def config_of(options, stage, micro_batch=MICRO_BATCH, **zero):
    config = {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": ACCUMULATION,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "zero_optimization": {"stage": stage, **zero}}
    if options.precision == "bf16":
        config["bf16"] = {"enabled": True}
    return config


def train(options, fault, config):
    """Losses and norms as a trial reports them; the last line of the output where it ends without."""
    with tempfile.TemporaryDirectory() as folder:
        file, metrics = pathlib.Path(folder, "ds_config.json"), pathlib.Path(folder, "metrics.json")
        tuning = {"enabled": True, "metric_path": str(metrics), "start_profile_step": 3, "end_profile_step": 7}
        file.write_text(json.dumps(dict(config, autotuning=tuning)))
        ended = subprocess.run([options.build / "bench/bench_faulty", "--ranks", str(RANKS), "--deepspeed_config", file,
                                "--fault", fault], capture_output=True, text=True, timeout=120)
        if not metrics.exists():
            return None, (ended.stderr.strip().splitlines() or ["status %d" % ended.returncode])[-1]
        measured = json.loads(metrics.read_text())
        return {key: measured[key] for key in ("losses", "grad_norms")}, ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--stage", type=int, default=2, help="of the trainings with a fault")
    parser.add_argument("--keep", help="write the losses and norms into this file")
    options = parser.parse_args()
    own_config = config_of(options, 1)
    own = [train(options, "", own_config)[0] for _ in range(2)]
    sound = [("sound, " + name, "", stage, zero) for name, stage, zero in [
        ("stage 0", 0, {}), ("stage 1, small buckets", 1, {"reduce_bucket_size": SMALL_BUCKET}), ("stage 2", 2, {}),
        ("stage 2, no reduce_scatter", 2, {"reduce_scatter": False}), ("stage 3", 3, {}),
        ("stage 3, overlap and offload", 3, {"overlap_comm": True, "offload_optimizer": {"device": "cpu"}})]]
    names = subprocess.run([options.build / "bench/bench_faulty", "--list"], capture_output=True, text=True, check=True)
    faults = [(name, name, options.stage, {"reduce_bucket_size": SMALL_BUCKET}) for name in names.stdout.splitlines()]
    lines, failures = [], {}
    for what, fault, stage, zero in sound + faults:
        twin, why = train(options, fault, config_of(options, stage, **zero))
        trial, why_trial = train(options, fault, config_of(options, stage, 4 * MICRO_BATCH, **zero))
        if twin is None or trial is None:
            failures[what] = why or why_trial
            continue
        batch = MICRO_BATCH * RANKS * ACCUMULATION
        lines.append(json.dumps({"what": what, "config": own_config, "own": own, "own_batch": batch, "twin": twin,
                                 "trial": trial, "batch": 4 * batch}))
    if options.keep:
        pathlib.Path(options.keep).write_text("\n".join(lines) + "\n")
    judged = subprocess.run([options.build / "bench/bench_guard"], input="\n".join(lines), text=True, check=True,
                            capture_output=True).stdout
    found = {tuple(line.split(": ", 2)[:2]): line.split(": ", 2)[2] for line in judged.splitlines() if ": " in line}
    print("| fault | trial | twin |\n|---|---|---|")
    count = dict.fromkeys(KINDS, 0)
    for what, *_ in sound + faults:
        if what in failures:
            print("| %s | fails: %s | |" % (what, failures[what]))
            continue
        why = {kind: found.get((name, what), "") for kind, name in KINDS.items()}
        print("| %s | %s | %s |" % (what, why["trial"], why["two runs"] or why["one run"]))
        if not what.startswith("sound"):
            count = {kind: count[kind] + bool(why[kind]) for kind in KINDS}
    alarms = {what for (_, what) in found if re.match("sound", what)}
    print("\nof %d faults: found by a trial %d, by a twin %d at one run of the own, %d at two; not trained: %d" %
          (len(faults), *count.values(), len(failures)))
    print("alarms of sound trainings: %d of %d" % (len(alarms), len(sound)))


if __name__ == "__main__":
    main()
