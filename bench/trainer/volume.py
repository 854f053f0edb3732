"""Bytes on the wire by stage, world and precision: a loopback of its own, in a network namespace of its own.

ZeRO's paper (SC 2020, section 7) counts in parameters a step: 2 at the stages 0 to 2, 3 at stage 3, of each rank and
times (N - 1) / N for N ranks. The ranks are started one by one, so that everything goes over the network.
"""
import itertools
import os
import subprocess

import overlap
from programs import zero

NAMESPACE = f"dsat-volume-{os.getpid()}"
INSIDE = ("ip", "netns", "exec", NAMESPACE)
MODEL = "--model gpt --layers 12 --hidden 64 --heads 4 --seq 16 --vocab 64"
STEPS = (2, 12)  # the difference leaves out what the start takes
LIMIT = 0.05


def sent_bytes():
    lines = subprocess.run([*INSIDE, "cat", "/proc/net/dev"], check=True, capture_output=True, text=True).stdout
    loopback = next(line for line in lines.splitlines() if line.strip().startswith("lo:"))
    return int(loopback.split(":")[1].split()[8])


def run(trial, o):
    reason = overlap.why_not()
    if reason:
        print(f"\nVolume: not measured: {reason}")
        return True
    parameters = trial.information(MODEL, {"train_micro_batch_size_per_gpu": 1})["num_params"]
    print(f"\nVolume: gpt, {parameters:,} parameters, bytes a step of all ranks\n\n"
          "| stage | ranks | precision | bytes | the paper's | ratio | |\n|---|---|---|---|---|---|---|")
    all_held = True
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        subprocess.run([*INSIDE, "ip", "link", "set", "lo", "up"], check=True)
        for bf16, ranks, stage in itertools.product((False, True), (2, 4), range(4)):
            config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": bf16}, "zero_optimization": zero(stage)}
            totals = []
            for steps in STEPS:
                before = sent_bytes()
                trial.step_ms_apart(f"{MODEL} --steps {steps + 5}", config, ranks, INSIDE)
                totals.append(sent_bytes() - before)
            bytes_a_step = (totals[1] - totals[0]) / (STEPS[1] - STEPS[0])
            expected = (3 if stage == 3 else 2) * (ranks - 1) * parameters * (2 if bf16 else 4)
            ratio = bytes_a_step / expected
            held = abs(ratio - 1) <= LIMIT
            all_held = all_held and held
            print(f"| {stage} | {ranks} | {'bf16' if bf16 else 'fp32'} | {bytes_a_step:,.0f} | {expected:,} | "
                  f"{ratio:.3f} | {'held' if held else 'MISSED'} |", flush=True)
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)
    return all_held
